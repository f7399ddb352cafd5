package cases

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// word reads what follows a word of a request. What it expects is checked when the request is over.
type word func(p *parser, r *Request) error

// words are what may follow a request.
var words = map[string]word{
	"from":   text("an address, such as 203.0.113.7", func(r *Request, text string) { r.From = text }),
	"server": text("the name of a server", func(r *Request, text string) { r.Server = text }),
	"user":   text("the name of a user who is logged in", func(r *Request, text string) { r.assume("http.auth.user.id", text) }),
	"header": pair("a name and a value, such as header X-Api-Key k1", func(r *Request, name, value string) {
		r.Header = append(r.Header, strings.TrimSuffix(name, ":")+": "+value)
	}),
	"body":   anyText(func(r *Request, text string) { r.Body = []byte(text) }),
	"assume": pair("a placeholder that only a real request has, and its value, such as assume {http.auth.user.id} alice", (*Request).assume),
	"repeat": number(1, maxRepeat, func(r *Request, n int) { r.Repeat = n }),
	"every":  span(maxSpan, func(r *Request, d time.Duration) { r.Every = d }),
	"takes":  span(maxTakes, func(r *Request, d time.Duration) { r.Takes = d }),

	"answer": number(200, 599, func(r *Request, n int) { r.answered().Status = n }),
	"answer_header": pair("a name and a value, such as answer_header X-Cost 7", func(r *Request, name, value string) {
		r.answered().Header.Add(strings.TrimSuffix(name, ":"), value)
	}),
	"answer_body": anyText(func(r *Request, text string) { r.answered().Body = []byte(text) }),

	"pass":    count(func(e *Expect, n *int) { e.Pass = n }),
	"refused": count(func(e *Expect, n *int) { e.Refused = n }),
	"any":     func(_ *parser, r *Request) error { r.Expect.Any = true; return nil },
	"by": text("the zone that refuses", func(r *Request, zone string) {
		r.Expect.By, r.Expect.zones = zone, append(r.Expect.zones, zone)
	}),

	"status": number(200, 599, func(r *Request, n int) {
		r.Expect.status = true
		r.last(func(c *checker) { c.want(n == c.x.response.status, "status "+strconv.Itoa(n), c.x.said()) })
	}),
	"retry_after": retryAfter,
	"waits": span(maxSpan, func(r *Request, d time.Duration) {
		r.last(func(c *checker) {
			as := c.x.Wait.Round(time.Millisecond) == d.Round(time.Millisecond)
			c.want(as, "it waits "+duration.Format(d), "it waits "+duration.Format(c.x.Wait))
		})
	}),
	"response": pair("a header and its value, such as response RateLimit-Policy \"...\"", func(r *Request, name, value string) {
		name = strings.TrimSuffix(name, ":")
		r.last(func(c *checker) {
			got := "no header " + name
			values := c.x.response.sent.Values(name)
			if len(values) > 0 {
				got = name + ": " + strings.Join(values, ", ")
			}
			c.want(got == name+": "+value, name+": "+value, got)
		})
	}),
	"no_response": text("a header that the response must not have", func(r *Request, name string) {
		r.last(func(c *checker) {
			values := c.x.response.sent.Values(name)
			c.want(len(values) == 0, "no header "+name, name+": "+strings.Join(values, ", "))
		})
	}),
	"contains": text("a text that is in the body of the response", func(r *Request, text string) {
		r.last(func(c *checker) {
			body := c.x.response.body.String()
			c.want(strings.Contains(body, text), fmt.Sprintf("a body with %q", text), fmt.Sprintf("%.200q", body))
		})
	}),

	"key": pair("a zone and a key, such as key clients 203.0.113.7", func(r *Request, zone, text string) {
		r.in(zone, func(c *checker, v *trial.Visit) {
			key, err := v.Use.Template.FromText(text)
			c.want(err == nil && key == v.Found.Key, "key "+text+" in zone "+zone, "key "+v.Found.Key)
		})
	}),
	"counts": text("the name of a zone", func(r *Request, zone string) {
		r.in(zone, func(c *checker, v *trial.Visit) { c.want(counts(v), "zone "+zone+" counts it", v.Outcome) })
	}),
	"skips": text("the name of a zone", func(r *Request, zone string) {
		r.Expect.zones = append(r.Expect.zones, zone)
		r.last(func(c *checker) {
			if v := c.x.Visit(zone); v != nil && v.Met {
				c.want(!counts(v), "zone "+zone+" does not count it", v.Outcome)
			}
		})
	}),
	"used": amount("used", func(d *algorithms.Decision) int64 { return d.Quota - d.Remaining }),
	"left": amount("left", func(d *algorithms.Decision) int64 { return d.Remaining }),
	"dry_run": text("the name of a zone that would refuse the request if it were no dry run", func(r *Request, zone string) {
		r.in(zone, func(c *checker, v *trial.Visit) {
			c.want(v.Outcome == outcome.Names[outcome.DryRun], "zone "+zone+" would refuse it", v.Outcome)
		})
	}),
	"outcome": func(p *parser, r *Request) error {
		zone, name, err := p.two("a zone and an outcome, such as outcome clients exempt")
		if err == nil && !slices.Contains(outcome.Names[:], name) {
			err = p.unknown("outcome", name, outcome.Names[:])
		}
		r.in(zone, func(c *checker, v *trial.Visit) {
			c.want(name == v.Outcome, "outcome "+name+" in zone "+zone, v.Outcome)
		})
		return err
	},
}

// last checks the last request.
func (r *Request) last(check func(*checker)) { r.Expect.last = append(r.Expect.last, check) }

// in checks what has happened to the last request in a zone, which it must meet.
func (r *Request) in(zone string, check func(*checker, *trial.Visit)) {
	r.Expect.zones = append(r.Expect.zones, zone)
	r.last(func(c *checker) {
		if v := c.x.Visit(zone); v != nil && v.Met {
			check(c, v)
		} else {
			c.want(false, "zone "+zone+" counts it", "zone "+zone+" does not")
		}
	})
}

// counts reports whether a zone counts a request that meets it.
func counts(v *trial.Visit) bool { return v.Outcome != outcome.Names[outcome.Exempt] }

// text takes one text, which is not empty.
func text(what string, set func(r *Request, text string)) word {
	return func(p *parser, r *Request) error {
		text, err := p.one(what)
		set(r, text)
		return err
	}
}

// anyText takes one text, which may be empty.
func anyText(set func(r *Request, text string)) word {
	return func(p *parser, r *Request) error {
		if !p.NextArg() {
			return p.Errf("%s needs a text", p.word)
		}
		set(r, p.Val())
		return nil
	}
}

// pair takes a name and a value, which may be empty.
func pair(what string, set func(r *Request, name, value string)) word {
	return func(p *parser, r *Request) error {
		name, value, err := p.two(what)
		set(r, name, value)
		return err
	}
}

// number takes a whole number.
func number(least, most int, set func(r *Request, n int)) word {
	return func(p *parser, r *Request) error {
		n, err := p.number(least, most)
		set(r, n)
		return err
	}
}

// span takes a duration.
func span(most time.Duration, set func(r *Request, d time.Duration)) word {
	return func(p *parser, r *Request) error {
		d, err := p.duration()
		if err == nil && d > most {
			err = p.Errf("%s must be at most %s, got '%s'", p.word, duration.Format(most), p.Val())
		}
		set(r, d)
		return err
	}
}

// count takes a number, or nothing, which means all.
func count(set func(e *Expect, n *int)) word {
	return func(p *parser, r *Request) (err error) {
		n := -1
		if p.nextIs(func(text string) bool { return strings.Trim(text, "0123456789") == "" }) {
			if n, err = strconv.Atoi(p.Val()); err != nil {
				err = p.Errf("%s must be a number, got '%s'", p.word, p.Val())
			}
		}
		set(&r.Expect, &n)
		return err
	}
}

// amount takes the name of a zone, and a number that is expected of its decision.
func amount(what string, of func(*algorithms.Decision) int64) word {
	return func(p *parser, r *Request) error {
		zone, text, err := p.two("a zone and a number, such as " + p.word + " clients 5")
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return p.Errf("%s %s must be a number, such as 5, got '%s'", p.word, zone, text)
		}
		r.in(zone, func(c *checker, v *trial.Visit) {
			if d := decisionOf(v); d == nil {
				c.want(false, "a limit of zone "+zone+" that is used", v.Outcome)
			} else {
				c.want(of(d) == n, fmt.Sprintf("%d %s in zone %s", n, what, zone), fmt.Sprintf("%d %s", of(d), what))
			}
		})
		return nil
	}
}

func retryAfter(p *parser, r *Request) error {
	want := ""
	if !p.nextIs(func(text string) bool { return text == "none" }) {
		d, err := p.duration()
		if err != nil {
			return err
		}
		want = strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
	}
	r.last(func(c *checker) {
		got := c.x.response.sent.Get("Retry-After")
		c.want(got == want, "Retry-After "+cmp.Or(want, "none"), "Retry-After "+cmp.Or(got, "none"))
	})
	return nil
}

func (r *Request) assume(name, value string) {
	if r.Assume == nil {
		r.Assume = make(map[string]string)
	}
	r.Assume[strings.Trim(name, "{}")] = value
}

// answered returns the answer of the upstream.
func (r *Request) answered() *Answer {
	if r.Answer == nil {
		r.Answer = &Answer{Status: http.StatusOK, Header: make(http.Header)}
	}
	return r.Answer
}
