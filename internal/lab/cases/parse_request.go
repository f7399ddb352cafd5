package cases

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// request parses a request: its method and URL, and what belongs to it, on the same line or in a block.
func (p *parser) request(s *Step) error {
	r := &Request{Request: adminapi.Request{Method: p.Val()}, Repeat: 1}
	s.Request = r
	if !p.NextArg() {
		return p.Errf("%s needs a URL or a path, such as %[1]s /login", r.Method)
	}
	if r.URL = p.Val(); !strings.Contains(r.URL, "://") && !strings.HasPrefix(r.URL, "/") {
		return p.Errf("the URL must begin with http://, https:// or /, got '%s'", r.URL)
	}
	for p.NextArg() {
		if err := p.requestWord(r); err != nil {
			return err
		}
	}
	for nesting := p.Nesting(); p.NextBlock(nesting); {
		if err := p.requestWord(r); err != nil {
			return err
		}
		for p.NextArg() {
			if err := p.requestWord(r); err != nil {
				return err
			}
		}
	}
	return p.checkRequest(r)
}

// checkRequest checks what depends on several words.
func (p *parser) checkRequest(r *Request) error {
	e := &r.Expect
	for _, n := range []*int{e.Pass, e.Refused} {
		if n != nil && *n > r.Repeat {
			return p.Errf("%d cannot pass or be refused of %d: write repeat %[1]d, or a smaller number", *n, r.Repeat)
		}
	}
	if e.Pass != nil && e.Refused != nil && (*e.Pass < 0 || *e.Refused < 0 || *e.Pass+*e.Refused > r.Repeat) {
		return p.Errf("pass and refused together need numbers whose sum is at most repeat, such as repeat 6 pass 5 refused 1")
	}
	if e.Pass == nil && e.Refused == nil && !e.Any {
		all := -1
		switch {
		case e.By != "":
			e.Refused = &all
		case e.Status == 0:
			e.Pass = &all
		}
	}
	return nil
}

// word parses a word that may follow a request, with what it takes.
type word func(p *parser, name string, r *Request) error

// words are what may follow a request.
var words = map[string]word{
	"from":   text("an address, such as 203.0.113.7", func(r *Request, text string) { r.From = text }),
	"server": text("the name of a server", func(r *Request, text string) { r.Server = text }),
	"user":   text("the name of a user who is logged in", func(r *Request, text string) { r.setAssumed("http.auth.user.id", text) }),
	"header": pair("a name and a value, such as header X-Api-Key k1", func(r *Request, name, value string) {
		r.Header = append(r.Header, strings.TrimSuffix(name, ":")+": "+value)
	}),
	"body":     anyText(func(r *Request, text string) { r.Body = []byte(text) }),
	"assume":   pair("a placeholder that only a real request has, and its value, such as assume {http.auth.user.id} alice", (*Request).setAssumed),
	"instance": number(1, maxInstances, func(r *Request) *int { return &r.Instance }),
	"repeat":   number(1, maxRepeat, func(r *Request) *int { return &r.Repeat }),
	"every":    func(p *parser, name string, r *Request) error { return p.durationOf(name, &r.Every) },
	"takes":    (*parser).takes,

	"answer": number(200, 599, func(r *Request) *int { return &r.answered().Status }),
	"answer_header": pair("a name and a value, such as answer_header X-Cost 7", func(r *Request, name, value string) {
		r.answered().Header.Add(strings.TrimSuffix(name, ":"), value)
	}),
	"answer_body": anyText(func(r *Request, text string) { r.answered().Body = []byte(text) }),

	"pass":        func(p *parser, name string, r *Request) error { return p.count(name, &r.Expect.Pass) },
	"refused":     func(p *parser, name string, r *Request) error { return p.count(name, &r.Expect.Refused) },
	"any":         func(_ *parser, _ string, r *Request) error { r.Expect.Any = true; return nil },
	"by":          text("the zone that refuses", func(r *Request, text string) { r.Expect.By = text }),
	"status":      number(200, 599, func(r *Request) *int { return &r.Expect.Status }),
	"retry_after": (*parser).retryAfter,
	"waits":       (*parser).waits,
	"response": pair("a header and its value, such as response RateLimit-Policy \"...\"", func(r *Request, name, value string) {
		r.Expect.Header = append(r.Expect.Header, Field{Name: strings.TrimSuffix(name, ":"), Value: value})
	}),
	"no_response": text("a header that the response must not have", func(r *Request, text string) {
		r.Expect.Header = append(r.Expect.Header, Field{Name: text, Absent: true})
	}),
	"contains": text("a text that is in the body of the response", func(r *Request, text string) { r.Expect.Body = &text }),

	"key":    ofZone("a zone and a key, such as key clients 203.0.113.7", func(z *ZoneExpect, text string) { z.Key = &text }),
	"counts": onZone("the name of a zone", func(z *ZoneExpect) { z.Counts = new(bool); *z.Counts = true }),
	"skips":  onZone("the name of a zone", func(z *ZoneExpect) { z.Counts = new(bool) }),
	"used":   amount(func(z *ZoneExpect, n int64) { z.Used = &n }),
	"left":   amount(func(z *ZoneExpect, n int64) { z.Left = &n }),
	"dry_run": onZone("the name of a zone that would refuse the request if it were no dry run", func(z *ZoneExpect) {
		z.DryRun = true
	}),
	"outcome": ofZone("a zone and an outcome, such as outcome clients exempt", func(z *ZoneExpect, text string) { z.Outcome = text }),
}

// text takes one text, which is not empty.
func text(what string, set func(r *Request, text string)) word {
	return func(p *parser, name string, r *Request) error {
		var text string
		err := p.one(name, what, &text)
		set(r, text)
		return err
	}
}

// anyText takes one text, which may be empty.
func anyText(set func(r *Request, text string)) word {
	return func(p *parser, name string, r *Request) error {
		if !p.NextArg() {
			return p.Errf("%s needs a text", name)
		}
		set(r, p.Val())
		return nil
	}
}

// pair takes a name and a value, which may be empty.
func pair(what string, set func(r *Request, name, value string)) word {
	return func(p *parser, name string, r *Request) error {
		of, value, err := p.two(name, what)
		set(r, of, value)
		return err
	}
}

// number takes a whole number.
func number(least, most int, of func(*Request) *int) word {
	return func(p *parser, name string, r *Request) (err error) {
		*of(r), err = p.number(name, least, most)
		return err
	}
}

// onZone takes the name of a zone, of which something is expected.
func onZone(what string, set func(*ZoneExpect)) word {
	return text(what, func(r *Request, zone string) {
		z := ZoneExpect{Zone: zone}
		set(&z)
		r.Expect.Zones = append(r.Expect.Zones, z)
	})
}

// ofZone takes the name of a zone, and a text that is expected of it.
func ofZone(what string, set func(*ZoneExpect, string)) word {
	return pair(what, func(r *Request, zone, text string) {
		z := ZoneExpect{Zone: zone}
		set(&z, text)
		r.Expect.Zones = append(r.Expect.Zones, z)
	})
}

// amount takes the name of a zone, and a number that is expected of it.
func amount(set func(*ZoneExpect, int64)) word {
	return func(p *parser, name string, r *Request) error {
		zone, text, err := p.two(name, "a zone and a number, such as "+name+" clients 5")
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return p.Errf("%s %s must be a number, such as 5, got '%s'", name, zone, text)
		}
		z := ZoneExpect{Zone: zone}
		set(&z, n)
		r.Expect.Zones = append(r.Expect.Zones, z)
		return nil
	}
}

func (p *parser) requestWord(r *Request) error {
	name := p.Val()
	parse, ok := words[name]
	if !ok {
		return p.unknown(name, "a request", slices.Sorted(maps.Keys(words)))
	}
	return parse(p, name, r)
}

// one takes one text.
func (p *parser) one(word, what string, to *string) error {
	if !p.NextArg() || p.Val() == "" {
		return p.Errf("%s needs %s", word, what)
	}
	*to = p.Val()
	return nil
}

// two takes a name and a value, which may be empty.
func (p *parser) two(word, what string) (name, value string, err error) {
	if err := p.one(word, what, &name); err != nil {
		return "", "", err
	}
	if !p.NextArg() {
		return "", "", p.Errf("%s %s needs a value: %s", word, name, what)
	}
	return name, p.Val(), nil
}

// nextIs takes the next word of the line if it is as wanted.
func (p *parser) nextIs(wanted func(string) bool) bool {
	if !p.NextArg() {
		return false
	}
	if wanted(p.Val()) {
		return true
	}
	p.Prev()
	return false
}

func (r *Request) setAssumed(name, value string) {
	if r.Assume == nil {
		r.Assume = make(map[string]string)
	}
	r.Assume[strings.Trim(name, "{}")] = value
}

// takes is limited because a request renews its slots for as long as it runs.
func (p *parser) takes(_ string, r *Request) error {
	if err := p.durationOf("takes", &r.Takes); err != nil {
		return err
	}
	if r.Takes > maxTakes {
		return p.Errf("takes must be at most %s, got '%s'", duration.Format(maxTakes), p.Val())
	}
	return nil
}

// answered returns the answer of the upstream.
func (r *Request) answered() *Answer {
	if r.Answer == nil {
		r.Answer = &Answer{Status: http.StatusOK, Header: make(http.Header)}
	}
	return r.Answer
}

// count takes a number, or nothing, which means all.
func (p *parser) count(word string, to **int) error {
	n := -1
	if p.nextIs(isNumber) {
		var err error
		if n, err = strconv.Atoi(p.Val()); err != nil {
			return p.Errf("%s must be a number, got '%s'", word, p.Val())
		}
	}
	*to = &n
	return nil
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

func (p *parser) retryAfter(_ string, r *Request) error {
	d := time.Duration(-1)
	if !p.nextIs(func(text string) bool { return text == "none" }) {
		if err := p.durationOf("retry_after", &d); err != nil {
			return err
		}
	}
	r.Expect.RetryAfter = &d
	return nil
}

func (p *parser) waits(_ string, r *Request) error {
	r.Expect.Waits = new(time.Duration)
	return p.durationOf("waits", r.Expect.Waits)
}
