package cases

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Extension is the end of the names of files of cases. What is in front of it is the file of the config.
const Extension = ".test"

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
func (p *parser) top() error {
	p.word = p.Val()
	if p.word == "case" {
		return p.parseCase()
	}
	args := p.RemainingArgs()
	switch n := len(args); p.word {
	case "url":
		if n != 1 || !strings.HasPrefix(args[0], "http://") && !strings.HasPrefix(args[0], "https://") {
			return p.wrong("the beginning of URLs, such as https://example.com", args, option.ErrWrong)
		}
		p.URL = strings.TrimSuffix(args[0], "/")
	case "accept":
		if n != 2 {
			return p.wrong("a change, as --mutate prints it, and the reason, each in quotes", args, option.ErrWrong)
		}
		p.Accepts = append(p.Accepts, Accepted{p.Line(), args[0], args[1]})
	default:
		return p.unknown("word in a file of cases", []string{"case", "url", "accept"})
	}
	return nil
}

// unknown is the error about a word that is not known.
func (p *parser) unknown(what string, known []string) error {
	return p.Errf("unknown %s: '%s'%s, must be one of %s", what, p.word, suggest.Hint(p.word, known), strings.Join(known, ", "))
}

// wrong is the error about the arguments of a word, with a reason if that says more.
func (p *parser) wrong(expects string, args []string, why error) error {
	text := fmt.Sprintf("%s needs %s, got '%s'", p.word, expects, strings.Join(args, " "))
	if why != option.ErrWrong {
		text += ": " + why.Error()
	}
	return p.Err(text)
}

// parseCase parses case "name" { steps }.
func (p *parser) parseCase() error {
	c := &Case{Line: p.Line()}
	if args := p.RemainingArgs(); len(args) == 1 {
		c.Name = args[0]
	} else {
		return p.wrong(`a name in quotes, such as case "a client may send 100 requests in a minute" {`, args, option.ErrWrong)
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
	p.Cases = append(p.Cases, c)
	return nil
}

// step parses a line of a case, with the block behind it.
func (p *parser) step(s *Step) (err error) {
	p.word = s.word
	switch capitals := strings.ToUpper(p.word); {
	case steps[p.word].read != nil:
		args := p.RemainingArgs()
		if s.zones, s.do, err = steps[p.word].read(args); err != nil {
			return p.wrong(steps[p.word].expects, args, err)
		}
		return nil
	case p.word != "" && strings.Trim(p.word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == "":
		return p.request(s)
	case slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, capitals):
		return p.Errf("methods are in capitals: write %s instead of '%s'", capitals, p.word)
	}
	return p.unknown("word in a case", append([]string{"GET and other methods"}, slices.Sorted(maps.Keys(steps))...))
}

// values are the words of a request with one value.
var values = strings.Fields("from server repeat every takes answer answer_body pass by status waits")

// request parses a request: its method and URL, and what belongs to it, on the same line or in a block.
func (p *parser) request(s *Step) error {
	r := &Request{Request: adminapi.Request{Method: p.word}, AnswerHeader: make(http.Header)}
	s.Request = r
	if !p.NextArg() || !strings.Contains(p.Val(), "://") && !strings.HasPrefix(p.Val(), "/") {
		return p.Errf("%s needs a URL that begins with http://, https:// or /, such as /login", p.word)
	}
	r.URL = p.Val()
	for nesting := p.Nesting(); p.NextArg() || p.NextBlock(nesting); {
		p.word = p.Val()
		w, known := words[p.word]
		isValue := slices.Contains(values, p.word)
		if isValue {
			w = word{takes: 1, expects: "a value"}
		} else if !known {
			all := slices.AppendSeq(slices.Clone(values), maps.Keys(words))
			slices.Sort(all)
			return p.unknown("word in a request", all)
		}
		args, err := p.args(w.takes)
		if isValue && err == nil {
			if err := option.Set(r, p.word, args); err != nil {
				return p.WrapErr(err)
			}
			continue
		}
		if err == nil {
			err = w.read(r, args)
		}
		if err != nil {
			return p.wrong(w.expects, args, err)
		}
	}
	if s.zones = r.complete(); r.Passes() > r.Repeat {
		return p.Errf("pass must be at most repeat, such as repeat 6 pass 5")
	}
	return nil
}

// It takes `n` arguments.
func (p *parser) args(n int) (args []string, err error) {
	for range n {
		if !p.NextArg() {
			return args, option.ErrWrong
		}
		args = append(args, p.Val())
	}
	return args, nil
}
