package adminapi

import "github.com/seed-161337e5/caddyratelimit/internal/advice"

// Diagnosis is what a check of a running Caddy has found.
type Diagnosis struct {
	// Level is the worst level of the findings, where what is unknown counts as ok.
	Level string `json:"level"`

	// Findings are what the checks have found that is not ok.
	Findings []Finding `json:"findings"`
}

// Finding is a problem that a check has found. What several zones, stores or instances have in common is one.
type Finding struct {
	Level string `json:"level"`
	Check string `json:"check"`

	// Of says what was checked: server, zone, adaptive_limit, store or instance; and Names which of these have the problem. Both are
	// absent if it is about the whole config.
	Of    string   `json:"of,omitempty"`
	Names []string `json:"names,omitempty"`

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

// Is reports whether two findings are about the same problem.
func (f *Finding) Is(o *Finding) bool {
	return f.Level == o.Level && f.Check == o.Check && f.Of == o.Of && f.Found == o.Found && f.Fix == o.Fix
}
