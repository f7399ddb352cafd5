package cases

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// word is a word with its arguments.
type word struct {
	takes   int    // so many arguments
	expects string // what they are, for errors
	read    func(r *Request, args []string) error
}

const (
	aDuration = "a duration, such as 30s"
	aNumber   = "a zone and a number, such as 5"
	aZone     = "the name of a zone"
)

// words are what may follow a request, but for its values. What it expects is checked when the request is over.
var words = map[string]word{
	"header": {2, "a name and a value, such as X-Api-Key k1", plain(func(r *Request, args []string) {
		r.Header = append(r.Header, strings.TrimSuffix(args[0], ":")+": "+args[1])
	})},
	"body": {1, "a text", plain(func(r *Request, args []string) { r.Body = []byte(args[0]) })},
	"assume": {
		2, "a placeholder that only a real request has, and its value, such as {http.auth.user.id} alice",
		plain(func(r *Request, args []string) {
			if r.Assume == nil {
				r.Assume = make(map[string]string)
			}
			r.Assume[args[0]] = args[1]
		}),
	},
	"answer_header": {2, "a name and a value, such as X-Cost 7", plain(func(r *Request, args []string) {
		r.AnswerHeader.Add(strings.TrimSuffix(args[0], ":"), args[1])
	})},

	"any":         {0, "", plain(func(r *Request, _ []string) { r.any = true })},
	"retry_after": {1, aDuration + ", or none", retryAfter},
	"response": {2, "a header and its value, or none, such as RateLimit-Policy \"...\"", plain(func(r *Request, args []string) {
		r.responds(strings.TrimSuffix(args[0], ":"), args[1])
	})},
	"contains": {1, "a text that is in the body of the response", plain(func(r *Request, args []string) {
		r.expect("contains", args[0], func(x *exchange) string {
			if body := x.response.Body.String(); !strings.Contains(body, args[0]) {
				return fmt.Sprintf("%.200q", body)
			}
			return args[0]
		})
	})},

	"counts": {1, aZone, counting("counts")},
	"skips":  {1, aZone, counting("skips")},
	"key": {2, "a zone and a key, such as clients 203.0.113.7", plain(func(r *Request, args []string) {
		r.in("key", args[0], args[1], func(v *trial.Visit) string {
			if key, err := v.Use.Template.FromText(args[1]); err == nil && key == v.Found.Key {
				return args[1]
			}
			return v.Found.Key
		})
	})},
	"used": {2, aNumber, amount("used", func(used, _ int64) int64 { return used })},
	"left": {2, aNumber, amount("left", func(_, left int64) int64 { return left })},
	"outcome": {2, "a zone and an outcome, such as clients exempt", func(r *Request, args []string) error {
		if known := outcome.Names[:]; !slices.Contains(known, args[1]) {
			return fmt.Errorf("unknown outcome%s, must be one of %s", suggest.Hint(args[1], known), strings.Join(known, ", "))
		}
		r.in("outcome", args[0], args[1], func(v *trial.Visit) string { return v.Outcome })
		return nil
	}},
}

// complete adds what the values of a request expect, and returns the zones that it names.
func (r *Request) complete() (zones []string) {
	r.Repeat = max(r.Repeat, 1)
	if r.Status != 0 {
		r.expect("status", strconv.Itoa(r.Status), func(x *exchange) string { return strconv.Itoa(x.response.Code) })
	}
	if r.Waits != nil {
		r.expect("waits", rounded(time.Duration(*r.Waits)), func(x *exchange) string { return rounded(x.Wait) })
	}
	if r.By != "" {
		return append(r.zones, r.By)
	}
	return r.zones
}

// expect expects a fact of the last request, in a normal form.
func (r *Request) expect(what, want string, got func(*exchange) string) {
	r.facts = append(r.facts, fact{what, want, got})
}

// responds expects a header of the last response.
func (r *Request) responds(name, want string) {
	r.expect("response "+name, want, func(x *exchange) string { return x.responded(name) })
}

// in expects a fact of what has happened to the last request in a zone.
func (r *Request) in(what, zone, want string, got func(*trial.Visit) string) {
	r.zones = append(r.zones, zone)
	r.expect(what+" "+zone, want, func(x *exchange) string {
		if v := x.Visit(zone); v != nil && v.Met {
			return got(v)
		}
		return "not met"
	})
}

// counting expects that a zone counts a request, or skips it.
func counting(want string) func(*Request, []string) error {
	return plain(func(r *Request, args []string) {
		r.zones = append(r.zones, args[0])
		r.expect("zone "+args[0], want, func(x *exchange) string {
			if v := x.Visit(args[0]); v != nil && v.Met && v.Outcome != outcome.Names[outcome.Exempt] {
				return "counts"
			}
			return "skips"
		})
	})
}

// amount expects a number of what a zone has decided.
func amount(what string, of func(used, left int64) int64) func(*Request, []string) error {
	return func(r *Request, args []string) error {
		n, err := strconv.ParseUint(args[1], 10, 63)
		if err != nil {
			return option.ErrWrong
		}
		r.in(what, args[0], strconv.FormatUint(n, 10), func(v *trial.Visit) string {
			if v.Asked == nil {
				return v.Outcome
			}
			d := &v.Asked.Decision
			return strconv.FormatInt(of(d.Quota-d.Remaining, d.Remaining), 10)
		})
		return nil
	}
}

func retryAfter(r *Request, args []string) error {
	want := args[0]
	if want != none {
		d, err := parseSpan(want)
		if err != nil {
			return err
		}
		want = strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
	}
	r.responds("Retry-After", want)
	return nil
}

// none means that the response must not have a header.
const none = "none"

// plain takes any arguments.
func plain(to func(r *Request, args []string)) func(*Request, []string) error {
	return func(r *Request, args []string) error {
		to(r, args)
		return nil
	}
}

func parseSpan(text string) (time.Duration, error) {
	d, err := option.ParseDuration(text)
	if err == nil && d < 0 {
		err = option.ErrWrong
	}
	return d, err
}
