// Package key makes the key of a request from a template: text with placeholders. Values are
// normalized, so that a client cannot get another key by writing the same request in another way.
package key

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Template is a parsed key.
type Template struct {
	Parts []Part

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

	// OftenEmpty are placeholders that are empty in most places where a zone may be.
	OftenEmpty []EmptyPlaceholder
}

// EmptyPlaceholder is a placeholder that is empty in most places, and why.
type EmptyPlaceholder struct{ Name, Why string }

// Part is either a placeholder or text.
type Part struct {
	text, Placeholder string
	mask              prefixes // of the value, if it is an address
	read              func(*placeholder.Request) string
	normal            *Normalizer // of the value; nil if it is not normalized
	repeatable        *repeatable // nil if a request has at most one value
}

// New parses a key. As everywhere in Caddy, a backslash makes a brace text.
func New(text string, ipv4Prefix, ipv6Prefix int) (*Template, error) {
	if ipv4Prefix < 0 || ipv4Prefix > 32 {
		return nil, fmt.Errorf("ipv4_prefix must be from 1 to 32, got %d", ipv4Prefix)
	}
	if ipv6Prefix < 0 || ipv6Prefix > 128 {
		return nil, fmt.Errorf("ipv6_prefix must be from 1 to 128, got %d", ipv6Prefix)
	}
	k := &Template{Prefixes: prefixes{ipv4Prefix, ipv6Prefix}}
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("key %q: %w", text, err)
	}
	for i := range k.Parts {
		p := &k.Parts[i]
		if p.Placeholder == "" {
			continue
		}
		p.mask, p.repeatable = k.Prefixes.forPlaceholder(p.Placeholder), newRepeatable(p.Placeholder)
		if addressPlaceholders[p.Placeholder] {
			k.Prefixes, k.HasAddress = p.mask, true
		}
		k.HasAddress = k.HasAddress || strings.HasPrefix(p.Placeholder, placeholder.RemotePrefix)
		if _, err := placeholder.Check(p.Placeholder, ", so that all clients would share one limit"); err != nil {
			return nil, fmt.Errorf("key %q: %w", text, err)
		}
		why, err := checkSuitable(p.Placeholder)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", text, err)
		}
		if why != "" {
			k.OftenEmpty = append(k.OftenEmpty, EmptyPlaceholder{p.Placeholder, why})
		}
	}
	k.lengthPrefixed = k.NumPlaceholders() > 1
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewEmptyReplacer())
	k.Empty, _ = k.Expand(&placeholder.Request{Request: (&http.Request{URL: new(url.URL)}).WithContext(ctx)})
	return k, nil
}

// Normalize makes the template normalize the values of hosts and paths.
func (k *Template) Normalize() {
	for i := range k.Parts {
		if n := NormalizerOf(k.Parts[i].Placeholder); n != nil {
			k.Parts[i].normal, k.Parts[i].read = n, n.read
			if n.read == nil {
				k.Parts[i].read = placeholder.Reader(n.source)
			}
		}
	}
}

// NewText parses the text of an option that is not a key, such as the name of a plan. Its values are
// not cut to prefixes and have no lengths before them.
func NewText(option, text string) (*Template, error) {
	k := new(Template)
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("%s %q: %w", option, text, err)
	}
	for i := range k.Parts {
		p := &k.Parts[i]
		if err := placeholder.CheckOption(option, p.Placeholder); err != nil {
			return nil, err
		}
		p.repeatable = newRepeatable(p.Placeholder)
	}
	return k, nil
}

// Varies reports whether requests can have different keys.
func (k *Template) Varies() bool {
	return slices.ContainsFunc(k.Parts, func(p Part) bool { return p.Placeholder != "" })
}

// Fields returns the paths of the fields of a JSON body that are parts of the template.
func (k *Template) Fields() (paths []string) {
	for i := range k.Parts {
		if path, ok := strings.CutPrefix(k.Parts[i].Placeholder, placeholder.JSONPrefix); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// Uses reports whether a placeholder is a part of the template.
func (k *Template) Uses(name string) bool {
	return slices.ContainsFunc(k.Parts, func(p Part) bool { return p.Placeholder == name })
}

func (k *Template) parse(text string) error {
	var literal strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '}'):
			i++
			literal.WriteByte(text[i])
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return fmt.Errorf("a brace is not closed; write \\{ for a brace that begins no placeholder")
			}
			if end == 1 {
				return fmt.Errorf("{} names no placeholder")
			}
			if strings.Contains(text[i+1:i+end], "{") {
				return fmt.Errorf("a placeholder must not contain another")
			}
			if literal.Len() > 0 {
				k.Parts = append(k.Parts, Part{text: literal.String()})
				literal.Reset()
			}
			name := text[i+1 : i+end]
			k.Parts = append(k.Parts, Part{Placeholder: name, read: placeholder.Reader(name)})
			i += end
		default:
			literal.WriteByte(c)
		}
	}
	if literal.Len() > 0 {
		k.Parts = append(k.Parts, Part{text: literal.String()})
	}
	return nil
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

// join makes a key from the values of the parts.
func (k *Template) join(value func(*Part) string) string {
	var b []byte
	for i := range k.Parts {
		b = k.appendValue(b, &k.Parts[i], value(&k.Parts[i]))
	}
	return string(b)
}

// appendValue appends the value of a part to a key.
func (k *Template) appendValue(b []byte, p *Part, value string) []byte {
	if k.lengthPrefixed && p.Placeholder != "" {
		b = append(strconv.AppendInt(b, int64(len(value)), 10), ':')
	}
	return append(b, value...)
}

func (p *Part) value(r *placeholder.Request) (s string, err error) {
	if p.Placeholder == "" {
		return p.text, nil
	}
	if p.normal != nil {
		return p.mask.apply(p.normal.normalize(p.read(r))), nil
	}
	if p.repeatable != nil {
		s, err = p.repeatable.value(r.Request)
		return p.mask.apply(s), err
	}
	return p.mask.apply(p.read(r)), nil
}
