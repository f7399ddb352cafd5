package cases

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

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
	p := &parser{Dispenser: caddyfile.NewDispenser(tokens), file: &File{Name: name}}
	names := make(map[string]int)
	for p.Next() {
		if err := p.top(); err != nil {
			return nil, err
		}
		n := len(p.file.Cases)
		if n == 0 {
			continue
		}
		c := p.file.Cases[n-1]
		if line := names[c.Name]; line != 0 && line != c.Line {
			return nil, fmt.Errorf("two cases have the name %q, at %s:%d and %d: each needs its own", c.Name, name, line, c.Line)
		}
		names[c.Name] = c.Line
	}
	if len(p.file.Cases) == 0 {
		return nil, fmt.Errorf("%s has no cases: write case \"what must hold\" { GET / }, with each request on a line of its own", name)
	}
	return p.file, nil
}

// parser parses a file of cases.
type parser struct {
	*caddyfile.Dispenser
	file *File
}

// tops and steps are the first words of lines.
var (
	tops  = []string{"case", "config", "adapter", "url", "accept"}
	steps = []string{"after", "at", "store", "instances", "override", "ban", "clear", "warning", "no_warning"}
)

// top parses a line at the top of the file.
func (p *parser) top() error {
	switch word := p.Val(); word {
	case "case":
		return p.parseCase()
	case "config":
		return p.text("the file of the config, such as Caddyfile", &p.file.Config)
	case "adapter":
		return p.text("the adapter of the config, such as caddyfile", &p.file.Adapter)
	case "url":
		if err := p.text("the beginning of URLs, such as https://example.com", &p.file.URL); err != nil {
			return err
		}
		if !strings.HasPrefix(p.file.URL, "http://") && !strings.HasPrefix(p.file.URL, "https://") {
			return p.Errf("url must begin with http:// or https://, such as https://example.com, got '%s'", p.file.URL)
		}
		p.file.URL = strings.TrimSuffix(p.file.URL, "/")
		return nil
	case "accept":
		a := Accepted{Line: p.Line()}
		if !p.Args(&a.Change, &a.Reason) || p.NextArg() {
			return p.Errf(`accept takes a change, as --mutate prints it, and the reason, each in quotes`)
		}
		p.file.Accepts = append(p.file.Accepts, a)
		return nil
	default:
		return p.unknown(word, "a file of cases", tops)
	}
}

// unknown is the error about a word that is not known.
func (p *parser) unknown(word, where string, known []string) error {
	return p.Errf("unknown word in %s: '%s'%s, must be one of %s", where, word, suggest.Hint(word, known), strings.Join(known, ", "))
}

// text takes the only argument of a line.
func (p *parser) text(what string, to *string) error {
	word := p.Val()
	if !p.NextArg() || p.Val() == "" {
		return p.Errf("%s needs %s", word, what)
	}
	*to = p.Val()
	return p.end(word)
}

// end returns an error if the line goes on.
func (p *parser) end(word string) error {
	if p.NextArg() {
		return p.Errf("'%s' is too much behind %s", p.Val(), word)
	}
	return nil
}

// parseCase parses case "name" { steps }.
func (p *parser) parseCase() error {
	c := &Case{Line: p.Line()}
	if err := p.text(`a name in quotes, such as case "a client may send 100 requests in a minute" {`, &c.Name); err != nil {
		return err
	}
	outside := p.Nesting()
	for p.NextBlock(outside) {
		s := Step{Line: p.Line()}
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
	p.file.Cases = append(p.file.Cases, c)
	return nil
}

// methods are those that are often written in small letters.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// isMethod reports whether a line begins with the method of a request.
func isMethod(word string) bool {
	return word != "" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// step parses a line of a case, with the block behind it.
func (p *parser) step(s *Step) error {
	switch word := p.Val(); word {
	case "after":
		s.Move = new(Move)
		return p.duration(&s.Move.After)
	case "at":
		return p.at(s)
	case "store":
		return p.store(s)
	case "instances":
		var err error
		if s.Instances, err = p.number("instances", 1, maxInstances); err != nil {
			return err
		}
		return p.end(word)
	case "override", "ban", "clear":
		return p.override(s)
	case "warning", "no_warning":
		return p.warning(s)
	default:
		if isMethod(word) {
			return p.request(s)
		}
		if slices.Contains(methods, strings.ToUpper(word)) {
			return p.Errf("methods are in capitals: write %s in place of '%s'", strings.ToUpper(word), word)
		}
		return p.unknown(word, "a case", append([]string{"GET and other methods"}, steps...))
	}
}

const (
	maxInstances = 100
	maxRepeat    = 1_000_000
	maxTakes     = 24 * time.Hour
)

// number takes a whole number.
func (p *parser) number(what string, least, most int) (int, error) {
	if !p.NextArg() {
		return 0, p.Errf("%s needs a number from %d to %d", what, least, most)
	}
	n, err := strconv.Atoi(p.Val())
	if err != nil || n < least || n > most {
		return 0, p.Errf("%s must be a number from %d to %d, got '%s'", what, least, most, p.Val())
	}
	return n, nil
}

// duration takes the only argument of a line.
func (p *parser) duration(to *time.Duration) error {
	word := p.Val()
	if err := p.durationOf(word, to); err != nil {
		return err
	}
	return p.end(word)
}

// durationOf takes a duration.
func (p *parser) durationOf(word string, to *time.Duration) error {
	if !p.NextArg() {
		return p.Errf("%s needs a duration, such as 30s", word)
	}
	d, err := option.ParseDuration(p.Val())
	if err == nil && d < 0 {
		err = fmt.Errorf("it is below 0")
	}
	if err != nil {
		return p.Errf("%s must be a duration, such as 30s, got '%s': %v", word, p.Val(), err)
	}
	*to = d
	return nil
}

// layouts are the forms in which a time may be written.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// at parses the time at which the next steps happen, in UTC unless it says otherwise.
func (p *parser) at(s *Step) error {
	args := strings.Join(p.RemainingArgs(), " ")
	for _, layout := range layouts {
		if at, err := time.Parse(layout, args); err == nil {
			s.Move = &Move{At: at}
			return nil
		}
	}
	return p.Errf("at needs a time, such as 2026-12-01 or 2026-12-01T09:30 (UTC) or 2026-12-01T09:30:00+01:00, got '%s'", args)
}

func (p *parser) store(s *Step) error {
	args := strings.Join(p.RemainingArgs(), " ")
	if args != "up" && args != "down" {
		return p.Errf("store must be up or down, got '%s'", args)
	}
	up := args == "up"
	s.Store = &up
	return nil
}

// override parses what operators do to a key.
func (p *parser) override(s *Step) error {
	word := p.Val()
	o := &Override{Ban: word == "ban", Clear: word == "clear"}
	if !p.Args(&o.Zone, &o.Key) {
		return p.Errf("%s needs the name of a zone and a key of it", word)
	}
	var rest []string
	for p.NextArg() {
		if p.Val() == "for" && !o.Clear {
			if err := p.durationOf("for", &o.For); err != nil {
				return err
			}
			continue
		}
		rest = append(rest, p.Val())
	}
	o.Limit = strings.Join(rest, " ")
	switch {
	case word == "override" && o.Limit == "":
		return p.Errf("override needs what holds for the key: a limit such as 500/1m, or exempt, or plan and its name")
	case word != "override" && o.Limit != "":
		return p.Errf("'%s' is too much behind %s", o.Limit, word)
	}
	s.Override = o
	return nil
}

func (p *parser) warning(s *Step) error {
	w := &Warning{None: p.Val() == "no_warning"}
	args := p.RemainingArgs()
	switch {
	case !w.None && len(args) != 2:
		return p.Errf(`warning needs the name of a zone, and a text that is in the warning`)
	case w.None && len(args) > 1:
		return p.Errf("no_warning takes the name of a zone, or nothing for all zones")
	case len(args) > 0:
		w.Zone = args[0]
	}
	if !w.None {
		w.Text = args[1]
	}
	s.Warning = w
	return nil
}
