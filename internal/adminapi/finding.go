package adminapi

import "github.com/seed-161337e5/caddyratelimit/internal/advice"

// Diagnosis is what a check of a running Caddy has found.
type Diagnosis struct {
	// Level is the worst level of the findings, where what is unknown counts as ok.
	Level string `json:"level"`

	// Checks are the names of the checks that were made, and Findings what they have found that is not ok.
	Checks   []string  `json:"checks"`
	Findings []Finding `json:"findings"`
}

// Finding is a problem that a check has found.
type Finding struct {
	Level string `json:"level"`
	Check string `json:"check"`

	// Server, Zone, Adaptive, Store and Instance name what was checked. A finding has exactly one of them, or none if
	// it is about the whole config.
	Server   string `json:"server,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Adaptive string `json:"adaptive,omitempty"`
	Store    string `json:"store,omitempty"`
	Instance string `json:"instance,omitempty"`

	Found string `json:"found"`

	// Fix says what to do. It is absent if nothing is to be done.
	Fix advice.Text `json:"fix,omitzero"`
}

// The levels of findings.
const (
	LevelOK      = "ok"      // of a diagnosis: nothing is wrong
	LevelUnknown = "unknown" // it could not be checked
	LevelWarn    = "warn"    // it may be wrong, or limits less than it seems
	LevelFail    = "fail"    // limits are not enforced, or hit the wrong clients
)

// severity orders the levels of findings.
var severity = map[string]int{LevelUnknown: 1, LevelWarn: 2, LevelFail: 3}

// WorseFirst sorts findings: the worst first.
func WorseFirst(a, b Finding) int { return severity[b.Level] - severity[a.Level] }
