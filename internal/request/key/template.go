// Package key makes the key of a request from a template: text with placeholders. Values are
// normalized, so that a client cannot get another key by writing the same request in another way.
package key

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Template is a parsed key.
type Template struct {
	Parts []Part

	placeholders []*Part // those of the parts that are placeholders

	// lengthPrefixed says that there are several placeholders. Then each value follows its length, so
	// that different values never make the same key.
	lengthPrefixed bool

	// Prefixes are the lengths to which addresses in the key are cut.
	Prefixes prefixes

	// HasAddress says that the key has the client's address, which is not to be trusted in TLS early
	// data.
	HasAddress bool

	// Empty is the key of a request for which all placeholders are empty. No other request has it.
	Empty string
}

// Meant returns the placeholder that a key with this text was most likely meant to be, if it is the same for all clients by
// mistake; else it is empty.
func (t *Template) Meant(text string) string {
	varies := func(p Part) bool { return p.Placeholder != "" && !placeholder.IsConstant(p.Placeholder) }
	switch {
	case slices.ContainsFunc(t.Parts, varies):
		return ""
	case t.Varies():
		return "http.vars.client_ip"
	}
	return placeholder.Meant(text)
}

// Part is either a placeholder or text.
type Part struct {
	text, Placeholder string
	mask              prefixes // of the value, if it is an address
	spelled           bool     // it has one value for all spellings of a host or a path
	read              func(*placeholder.Request) (string, error)
	clean             func(string) string // gives text the form that values have once they are read
}

// New parses a key. As everywhere in Caddy, a backslash makes a brace text.
func New(text string, ipv4Prefix, ipv6Prefix int) (*Template, error) {
	given := prefixes{ipv4Prefix, ipv6Prefix}
	k := &Template{Prefixes: given}
	err := k.parse(text)
	for _, p := range k.placeholders {
		p.mask = given.forPlaceholder(p.Placeholder)
		if addressPlaceholders[p.Placeholder] {
			k.Prefixes, k.HasAddress = p.mask, true
		}
		k.HasAddress = k.HasAddress || strings.HasPrefix(p.Placeholder, placeholder.RemotePrefix)
		_, unknown := placeholder.Check(p.Placeholder, ", so that all clients would share one limit")
		err = cmp.Or(err, unknown, checkSuitable(p.Placeholder))
	}
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", text, err)
	}
	k.lengthPrefixed = len(k.placeholders) > 1
	var empty []byte // not as a request without a path would have it, which is one for /
	for i := range k.Parts {
		empty = k.appendValue(empty, &k.Parts[i], k.Parts[i].text)
	}
	k.Empty = string(empty)
	return k, nil
}

// checkSuitable returns an error for a placeholder of Caddy that cannot distinguish clients,
// because it never has the same value twice, or never has a value.
func checkSuitable(named string) error {
	if strings.EqualFold(named, placeholder.HeaderPrefix+"Host") {
		return fmt.Errorf("{%s} is always empty, because Go's HTTP server removes this field from the header; "+
			"did you mean {host}, in JSON {http.request.host}?", named)
	}
	each := neverRepeated[named]
	if strings.HasPrefix(named, "time.now") {
		each = "request"
	}
	if each != "" {
		return fmt.Errorf("{%s} is different for each %s, so that nothing would be limited; did you mean {client_ip}, in JSON {http.vars.client_ip}?",
			named, each)
	}
	return nil
}

// neverRepeated are placeholders that never have the same value twice. Each connection or request has another one.
var neverRepeated = map[string]string{
	"http.request.remote": "connection", "http.request.remote.port": "connection",
	"http.request.uuid": "request", "http.request.duration": "request", "http.request.duration_ms": "request",
}

// NewText parses the text of an option that is not a key, such as the name of a plan. Its values are
// not cut to prefixes and have no lengths before them.
func NewText(option, text string) (*Template, error) {
	k := new(Template)
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("%s %q: %w", option, text, err)
	}
	for i := range k.Parts {
		if err := placeholder.CheckOption(option, k.Parts[i].Placeholder); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// NumPlaceholders returns the number of placeholders in the template.
func (k *Template) NumPlaceholders() int { return len(k.placeholders) }

// Varies reports whether requests can have different keys.
func (k *Template) Varies() bool { return len(k.placeholders) > 0 }

// Fields returns the paths of the fields of a JSON body that are parts of the template.
func (k *Template) Fields() (paths []string) {
	for _, p := range k.placeholders {
		if path, ok := strings.CutPrefix(p.Placeholder, placeholder.JSONPrefix); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// Uses reports whether a placeholder is a part of the template.
func (k *Template) Uses(name string) bool {
	return slices.ContainsFunc(k.placeholders, func(p *Part) bool { return p.Placeholder == name })
}

func (k *Template) parse(text string) error {
	var literal []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '}'):
			i++
			literal = append(literal, text[i])
		case c == '{':
			name, _, closed := strings.Cut(text[i+1:], "}")
			switch {
			case !closed:
				return errors.New("a brace is not closed; write \\{ for a brace that begins no placeholder")
			case name == "":
				return errors.New("{} names no placeholder")
			case strings.Contains(name, "{"):
				return errors.New("a placeholder must not contain another")
			}
			if plain, escaped := strings.CutSuffix(name, "_escaped"); escaped && spellingOf(plain) != nil {
				return fmt.Errorf("{%s} may be escaped in several ways: write {%s}", name, plain)
			}
			k.addText(literal)
			k.Parts, literal = append(k.Parts, newPart(name)), nil
			i += len(name) + 1
		default:
			literal = append(literal, c)
		}
	}
	k.addText(literal)
	for i := range k.Parts {
		if p := &k.Parts[i]; p.Placeholder != "" {
			k.placeholders = append(k.placeholders, p)
		}
	}
	return nil
}

func (k *Template) addText(text []byte) {
	if len(text) > 0 {
		k.Parts = append(k.Parts, Part{text: string(text)})
	}
}

// newPart returns the part for a placeholder.
func newPart(name string) Part {
	p := Part{Placeholder: name}
	if s := spellingOf(name); s != nil {
		p.spelled, p.read, p.clean = true, s.value, s.text
	} else if r := newRepeatable(name); r != nil {
		p.read = func(of *placeholder.Request) (string, error) { return r.value(of.Request) }
		p.clean = r.clean
	} else {
		read := placeholder.Reader(name)
		p.read = func(r *placeholder.Request) (string, error) { return read(r), nil }
		p.clean = func(text string) string { return text }
	}
	return p
}

// Expand returns the key of a request. If the error is a [*RepeatedError], the key is made from the
// first value of each placeholder.
func (k *Template) Expand(r *placeholder.Request) (key string, err error) {
	switch len(k.Parts) {
	case 0:
		return "", nil
	case 1:
		return k.Parts[0].value(r)
	}
	var room [128]byte
	b := room[:0]
	for i := range k.Parts {
		v, repeated := k.Parts[i].value(r)
		if repeated != nil {
			err = repeated
		}
		b = k.appendValue(b, &k.Parts[i], v)
	}
	return string(b), err
}

// appendValue appends the value of a part to a key.
func (k *Template) appendValue(b []byte, p *Part, value string) []byte {
	if k.lengthPrefixed && p.Placeholder != "" {
		b = append(strconv.AppendInt(b, int64(len(value)), 10), ':')
	}
	return append(b, value...)
}

func (p *Part) value(r *placeholder.Request) (string, error) {
	if p.Placeholder == "" {
		return p.text, nil
	}
	value, err := p.read(r)
	return p.mask.apply(value), err
}
