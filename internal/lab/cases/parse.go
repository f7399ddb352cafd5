package cases

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Extension is the end of the names of files of cases. What is in front of it is the file of the config.
const Extension = ".test"

// ConfigOf returns the file of the config of a file of cases.
func (f *File) ConfigOf() string {
	if f.Config == "" {
		return strings.TrimSuffix(f.Name, Extension)
	}
	if filepath.IsAbs(f.Config) {
		return f.Config
	}
	return filepath.Join(filepath.Dir(f.Name), f.Config)
}

// Parse parses a file of cases. Its errors have the file, the line, and what was expected.
func Parse(name string, text []byte) (*File, error) {
	var tokens []caddyfile.Token
	if len(bytes.TrimSpace(text)) > 0 { // the lexer takes an empty text for an error
		var err error
		if tokens, err = caddyfile.Tokenize(text, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	p := &parser{Dispenser: caddyfile.NewDispenser(tokens), File: &File{Name: name}}
	for p.Next() {
		if err := p.top(); err != nil {
			return nil, err
		}
	}
	if len(p.Cases) == 0 {
		return nil, fmt.Errorf("%s has no cases: write case \"what must hold\" { GET / }, with each request on a line of its own", name)
	}
	return p.File, nil
}

// parser parses a file of cases.
type parser struct {
	*caddyfile.Dispenser
	*File
	word string // what follows is of it
}

// top parses a line at the top of the file.
func (p *parser) top() (err error) {
	switch p.word = p.Val(); p.word {
	case "case":
		return p.parseCase()
	case "config":
		p.Config, err = p.one("the file of the config, such as Caddyfile")
	case "adapter":
		p.Adapter, err = p.one("the adapter of the config, such as caddyfile")
	case "url":
		p.URL, err = p.one("the beginning of URLs, such as https://example.com")
		if err == nil && !strings.HasPrefix(p.URL, "http://") && !strings.HasPrefix(p.URL, "https://") {
			err = p.Errf("url must begin with http:// or https://, such as https://example.com, got '%s'", p.URL)
		}
		p.URL = strings.TrimSuffix(p.URL, "/")
	case "accept":
		a := Accepted{Line: p.Line()}
		if !p.Args(&a.Change, &a.Reason) || p.NextArg() {
			return p.Errf(`accept takes a change, as --mutate prints it, and the reason, each in quotes`)
		}
		p.Accepts = append(p.Accepts, a)
	default:
		return p.unknown("word in a file of cases", p.word, []string{"case", "config", "adapter", "url", "accept"})
	}
	return p.end(err)
}

// unknown is the error about a word that is not known.
func (p *parser) unknown(what, word string, known []string) error {
	return p.Errf("unknown %s: '%s'%s, must be one of %s", what, word, suggest.Hint(word, known), strings.Join(known, ", "))
}

// end returns an error if the line goes on.
func (p *parser) end(err error) error {
	if err == nil && p.NextArg() {
		return p.Errf("'%s' is too much behind %s", p.Val(), p.word)
	}
	return err
}

// parseCase parses case "name" { steps }.
func (p *parser) parseCase() (err error) {
	c := &Case{Line: p.Line()}
	if c.Name, err = p.one(`a name in quotes, such as case "a client may send 100 requests in a minute" {`); p.end(err) != nil {
		return p.end(err)
	}
	outside := p.Nesting()
	for p.NextBlock(outside) {
		s := Step{Line: p.Line(), word: p.Val()}
		if err := p.step(&s); err != nil {
			return err
		}
		c.Steps = append(c.Steps, s)
	}
	if p.Nesting() > outside {
		return p.Errf("case %q does not end: a } is missing", c.Name)
	}
	if len(c.Steps) == 0 {
		return p.Errf("case %q is empty: write its requests in braces, each on a line of its own, such as GET /", c.Name)
	}
	for _, other := range p.Cases {
		if other.Name == c.Name {
			return fmt.Errorf("two cases have the name %q, at %s:%d and %d: each needs its own", c.Name, p.Name, other.Line, c.Line)
		}
	}
	p.Cases = append(p.Cases, c)
	return nil
}

// step parses a line of a case, with the block behind it.
func (p *parser) step(s *Step) (err error) {
	p.word = s.word
	parse, known := steps[p.word]
	switch capitals := strings.ToUpper(p.word); {
	case known:
		s.do, err = parse(p, s)
		return p.end(err)
	case p.word != "" && strings.Trim(p.word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == "":
		return p.request(s)
	case slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, capitals):
		return p.Errf("methods are in capitals: write %s instead of '%s'", capitals, p.word)
	}
	return p.unknown("word in a case", p.word, append([]string{"GET and other methods"}, slices.Sorted(maps.Keys(steps))...))
}

// request parses a request: its method and URL, and what belongs to it, on the same line or in a block.
func (p *parser) request(s *Step) error {
	r := &Request{Request: adminapi.Request{Method: p.word}, Repeat: 1}
	s.Request = r
	if !p.NextArg() {
		return p.Errf("%s needs a URL or a path, such as %[1]s /login", r.Method)
	}
	if r.URL = p.Val(); !strings.Contains(r.URL, "://") && !strings.HasPrefix(r.URL, "/") {
		return p.Errf("the URL must begin with http://, https:// or /, got '%s'", r.URL)
	}
	for nesting := p.Nesting(); p.NextArg() || p.NextBlock(nesting); {
		p.word = p.Val()
		parse, known := words[p.word]
		if !known {
			return p.unknown("word in a request", p.word, slices.Sorted(maps.Keys(words)))
		}
		if err := parse(p, r); err != nil {
			return err
		}
	}
	s.zones = r.Expect.zones
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
	all := -1
	switch {
	case e.Pass != nil && e.Refused != nil:
		if *e.Pass < 0 || *e.Refused < 0 || *e.Pass+*e.Refused > r.Repeat {
			return p.Errf("pass and refused together need numbers whose sum is at most repeat, such as repeat 6 pass 5 refused 1")
		}
	case e.Pass != nil || e.Refused != nil || e.Any:
	case e.By != "":
		e.Refused = &all
	case !e.status:
		e.Pass = &all
	}
	return nil
}

const (
	maxRepeat = 1_000_000
	maxTakes  = 24 * time.Hour // because a request renews its slots for as long as it runs
	maxSpan   = 1<<63 - 1
)

// number takes a whole number.
func (p *parser) number(least, most int) (int, error) {
	if !p.NextArg() {
		return 0, p.Errf("%s needs a number from %d to %d", p.word, least, most)
	}
	n, err := strconv.Atoi(p.Val())
	if err != nil || n < least || n > most {
		return 0, p.Errf("%s must be a number from %d to %d, got '%s'", p.word, least, most, p.Val())
	}
	return n, nil
}

// duration takes a duration.
func (p *parser) duration() (time.Duration, error) {
	if !p.NextArg() {
		return 0, p.Errf("%s needs a duration, such as 30s", p.word)
	}
	d, err := option.ParseDuration(p.Val())
	if err == nil && d < 0 {
		err = fmt.Errorf("it is below 0")
	}
	if err != nil {
		return 0, p.Errf("%s must be a duration, such as 30s, got '%s': %v", p.word, p.Val(), err)
	}
	return d, nil
}

// one takes one text, which is not empty.
func (p *parser) one(what string) (string, error) {
	if !p.NextArg() || p.Val() == "" {
		return "", p.Errf("%s needs %s", p.word, what)
	}
	return p.Val(), nil
}

// two takes a name and a value, which may be empty.
func (p *parser) two(what string) (name, value string, err error) {
	if name, err = p.one(what); err == nil && !p.NextArg() {
		err = p.Errf("%s %s needs a value: %s", p.word, name, what)
	}
	return name, p.Val(), err
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
