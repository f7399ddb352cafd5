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

// words are what may follow a request, with what each takes.
var words = map[string]func(p *parser, r *Request) error{
	"from":     func(p *parser, r *Request) error { return p.one("from", "an address, such as 203.0.113.7", &r.From) },
	"server":   func(p *parser, r *Request) error { return p.one("server", "the name of a server", &r.Server) },
	"header":   (*parser).header,
	"body":     (*parser).body,
	"assume":   (*parser).assume,
	"user":     (*parser).user,
	"instance": (*parser).instance,
	"repeat":   (*parser).repeat,
	"every":    func(p *parser, r *Request) error { return p.durationOf("every", &r.Every) },
	"takes":    (*parser).takes,

	"answer":        (*parser).answer,
	"answer_header": (*parser).answerHeader,
	"answer_body":   (*parser).answerBody,

	"pass":        func(p *parser, r *Request) error { return p.count("pass", &r.Expect.Pass) },
	"refused":     func(p *parser, r *Request) error { return p.count("refused", &r.Expect.Refused) },
	"any":         func(_ *parser, r *Request) error { r.Expect.Any = true; return nil },
	"by":          func(p *parser, r *Request) error { return p.one("by", "the zone that refuses", &r.Expect.By) },
	"status":      (*parser).status,
	"retry_after": (*parser).retryAfter,
	"waits":       (*parser).waits,
	"response":    (*parser).response,
	"no_response": (*parser).noResponse,
	"contains":    (*parser).contains,
	"key":         (*parser).key,
	"counts":      func(p *parser, r *Request) error { return p.counts("counts", r, true) },
	"skips":       func(p *parser, r *Request) error { return p.counts("skips", r, false) },
	"used":        func(p *parser, r *Request) error { return p.amount("used", r) },
	"left":        func(p *parser, r *Request) error { return p.amount("left", r) },
	"dry_run":     (*parser).dryRun,
	"outcome":     (*parser).outcome,
}

func (p *parser) requestWord(r *Request) error {
	word := p.Val()
	parse, ok := known[word]
	if !ok {
		return p.unknown(word, "a request", slices.Sorted(maps.Keys(known)))
	}
	return parse(p, r)
}

// known is words, which refer to it.
var known map[string]func(p *parser, r *Request) error

func init() { known = words }

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

func (p *parser) header(r *Request) error {
	name, value, err := p.two("header", "a name and a value, such as header X-Api-Key k1")
	r.Header = append(r.Header, strings.TrimSuffix(name, ":")+": "+value)
	return err
}

func (p *parser) body(r *Request) error {
	if !p.NextArg() {
		return p.Errf("body needs a text")
	}
	r.Body = []byte(p.Val())
	return nil
}

func (p *parser) assume(r *Request) error {
	name, value, err := p.two("assume", "a placeholder that only a real request has, and its value, such as assume {http.auth.user.id} alice")
	r.setAssumed(name, value)
	return err
}

func (p *parser) user(r *Request) error {
	var user string
	err := p.one("user", "the name of a user who is logged in", &user)
	r.setAssumed("http.auth.user.id", user)
	return err
}

func (r *Request) setAssumed(name, value string) {
	if r.Assume == nil {
		r.Assume = make(map[string]string)
	}
	r.Assume[strings.Trim(name, "{}")] = value
}

func (p *parser) instance(r *Request) (err error) {
	r.Instance, err = p.number("instance", 1, maxInstances)
	return err
}

func (p *parser) repeat(r *Request) (err error) {
	r.Repeat, err = p.number("repeat", 1, maxRepeat)
	return err
}

// takes is limited because a request renews its slots for as long as it runs.
func (p *parser) takes(r *Request) error {
	if err := p.durationOf("takes", &r.Takes); err != nil {
		return err
	}
	if r.Takes > maxTakes {
		return p.Errf("takes must be at most %s, got '%s'", duration.Format(maxTakes), p.Val())
	}
	return nil
}

func (p *parser) answer(r *Request) (err error) {
	r.answered().Status, err = p.number("answer", 200, 599)
	return err
}

// answered returns the answer of the upstream.
func (r *Request) answered() *Answer {
	if r.Answer == nil {
		r.Answer = &Answer{Status: http.StatusOK, Header: make(http.Header)}
	}
	return r.Answer
}

func (p *parser) answerHeader(r *Request) error {
	name, value, err := p.two("answer_header", "a name and a value, such as answer_header X-Cost 7")
	r.answered().Header.Add(strings.TrimSuffix(name, ":"), value)
	return err
}

func (p *parser) answerBody(r *Request) error {
	if !p.NextArg() {
		return p.Errf("answer_body needs a text")
	}
	r.answered().Body = []byte(p.Val())
	return nil
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

func (p *parser) status(r *Request) (err error) {
	r.Expect.Status, err = p.number("status", 200, 599)
	return err
}

func (p *parser) retryAfter(r *Request) error {
	d := time.Duration(-1)
	if !p.nextIs(func(text string) bool { return text == "none" }) {
		if err := p.durationOf("retry_after", &d); err != nil {
			return err
		}
	}
	r.Expect.RetryAfter = &d
	return nil
}

func (p *parser) waits(r *Request) error {
	r.Expect.Waits = new(time.Duration)
	return p.durationOf("waits", r.Expect.Waits)
}

func (p *parser) response(r *Request) error {
	name, value, err := p.two("response", "a header and its value, such as response RateLimit-Policy \"...\"")
	r.Expect.Header = append(r.Expect.Header, Field{Name: strings.TrimSuffix(name, ":"), Value: value})
	return err
}

func (p *parser) noResponse(r *Request) error {
	f := Field{Absent: true}
	err := p.one("no_response", "a header that the response must not have", &f.Name)
	r.Expect.Header = append(r.Expect.Header, f)
	return err
}

func (p *parser) contains(r *Request) error {
	r.Expect.Body = new(string)
	return p.one("contains", "a text that is in the body of the response", r.Expect.Body)
}

func (p *parser) key(r *Request) error {
	zone, key, err := p.two("key", "a zone and a key, such as key clients 203.0.113.7")
	r.Expect.Zones = append(r.Expect.Zones, ZoneExpect{Zone: zone, Key: &key})
	return err
}

func (p *parser) counts(word string, r *Request, counts bool) error {
	z := ZoneExpect{Counts: &counts}
	err := p.one(word, "the name of a zone", &z.Zone)
	r.Expect.Zones = append(r.Expect.Zones, z)
	return err
}

func (p *parser) amount(word string, r *Request) error {
	zone, text, err := p.two(word, "a zone and a number, such as "+word+" clients 5")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return p.Errf("%s %s must be a number, such as 5, got '%s'", word, zone, text)
	}
	z := ZoneExpect{Zone: zone, Used: &n}
	if word == "left" {
		z.Used, z.Left = nil, &n
	}
	r.Expect.Zones = append(r.Expect.Zones, z)
	return nil
}

func (p *parser) dryRun(r *Request) error {
	z := ZoneExpect{DryRun: true}
	err := p.one("dry_run", "the name of a zone that would refuse the request if it were no dry run", &z.Zone)
	r.Expect.Zones = append(r.Expect.Zones, z)
	return err
}

func (p *parser) outcome(r *Request) error {
	zone, text, err := p.two("outcome", "a zone and an outcome, such as outcome clients exempt")
	r.Expect.Zones = append(r.Expect.Zones, ZoneExpect{Zone: zone, Outcome: text})
	return err
}
