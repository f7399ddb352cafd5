// Package cases has the cases of caddy rate-limit test: their file format, how they are carried out, what they find, and
// how that is shown.
//
// The format has the syntax of a Caddyfile, because its files are beside one, and people who write the one read the
// other. Its lexer knows the line of each token, so errors can name it. YAML would have to quote placeholders,
// times, and words such as no and *. A word of a request is read and checked by one function, in a table.
package cases

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// File is a file of cases.
type File struct {
	Name    string // as it was given
	URL     string // the beginning of URLs that are only a path; empty if the file has none
	Cases   []*Case
	Accepts []Accepted
}

// Accepted is a change of the config that no case has to notice.
type Accepted struct {
	Line           int
	Change, Reason string
}

// Case is one case: steps that are carried out in order, beginning with unused limits.
type Case struct {
	Name  string
	Line  int
	Steps []Step
}

// Step is something that happens in a case.
type Step struct {
	Line    int
	Request *Request // nil for other steps

	word  string   // with which it begins
	zones []string // that it names
	do    func(w *world) error
}

// Request is a request, or several alike. Its words with one value are read by package option, the others by [words].
type Request struct {
	adminapi.Request // whose URL may be only a path

	Repeat int            `json:"repeat" range:"1..1000000"`
	Every  caddy.Duration `json:"every" range:"0s.."`
	Takes  caddy.Duration `json:"takes" range:"0s..1d"` // how long the upstream takes; a request renews its slots meanwhile

	// The response of the upstream. By default it has status 200 and no body.
	Answer       int    `json:"answer" range:"200..599"`
	AnswerBody   string `json:"answer_body"`
	AnswerHeader http.Header

	// Counts are of all repetitions, the rest is of the last one.
	Pass   *int            `json:"pass" range:"0..1000000"`
	By     string          `json:"by"` // the zone that refuses the others; empty if any may
	Status int             `json:"status" range:"200..599"`
	Waits  *caddy.Duration `json:"waits" range:"0s.."`

	any   bool // nothing is said of how many pass
	facts []fact
	zones []string
}

// Passes returns how many requests must pass; negative if any number may.
func (r *Request) Passes() int {
	switch {
	case r.Pass != nil:
		return *r.Pass
	case r.By != "" && !r.any:
		return 0
	case r.Status == 0 && !r.any:
		return r.Repeat
	}
	return -1
}

// fact is a fact of the last request.
type fact struct {
	what, want string
	got        func(*exchange) string
}

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
