package cases

import "time"

// Report is what the cases of some files have found.
type Report struct {
	Cases  []Result `json:"cases"`
	Failed int      `json:"failed"`

	// Changes are the changes of the configs that were tried; absent unless asked for.
	Changes []Change `json:"changes,omitempty"`

	Took time.Duration `json:"took"` // in nanoseconds
}

// Result is what a case has found.
type Result struct {
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Name     string        `json:"name"`
	Failures []Failure     `json:"failures,omitempty"`
	Took     time.Duration `json:"took"`
}

// Failure is an expectation that does not hold.
type Failure struct {
	Line     int      `json:"line"`
	Step     string   `json:"step"` // what was done, as "POST https://example.com/login, the 6th of 6, at 10s"
	Expected string   `json:"expected,omitempty"`
	Got      string   `json:"got"`
	State    []string `json:"state,omitempty"` // of the zones, in words
}

// Change is a change of the config that was tried.
type Change struct {
	Config string `json:"config"`
	Change string `json:"change"` // as "zone login: max_events 5 -> 6"

	// FoundBy is the first case that fails with the change. It is absent if none does.
	FoundBy string `json:"found_by,omitempty"`

	// Accepted is the reason why no case has to notice the change.
	Accepted string `json:"accepted,omitempty"`
}
