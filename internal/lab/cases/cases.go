// Package cases has the cases of caddy rate-limit test: their file format, how they are carried out, what they find, and
// how that is shown.
//
// The format has the syntax of a Caddyfile, because its files are beside one, and people who write the one read the
// other. Its lexer knows the line of each token, so errors can name it. YAML would have to quote placeholders,
// times, and words such as no and *. A word of a request is read and checked by one function, in a table.
package cases

import (
	"time"

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

// Request is a request, or several alike.
type Request struct {
	adminapi.Request // whose URL may be only a path

	Repeat int // at least 1
	Every  time.Duration
	Takes  time.Duration // how long the upstream takes to answer
	Answer Answer
	Expect Expect
}

// Answer is the response of the upstream. By default it has status 200 and no body.
type Answer struct {
	Status int
	Header [][2]string
	Body   string
}

// Expect is what is expected of a request. Counts are of all repetitions, the rest is of the last one.
type Expect struct {
	Passes int    // how many requests pass; negative if any number may
	By     string // the zone that refuses the others; empty if any may

	pass, refused int // as they are said
	any, status   bool
	facts         []fact
	zones         []string
}

// fact is a fact of the last request.
type fact struct {
	what, want string
	got        func(*exchange) string
}
