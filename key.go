package caddyratelimit

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// keyTemplate makes a request's key.
type keyTemplate struct {
	parts []keyPart

	// several says that there is more than one placeholder. Then each value is written
	// with its length, so that no value can imitate its neighbours.
	several bool

	// prefixes are what addresses in the key are cut to.
	prefixes prefixes

	// joins says that several values for a placeholder are joined. Otherwise different ones
	// are an error, and equal ones count as one.
	joins bool

	// early says that the key has an address that is not to be trusted in TLS early data.
	early bool

	// nothing is the key of a request for which all placeholders are empty. No other
	// request has it.
	nothing string

	// unknown are placeholders that only another module can know.
	unknown []string

	// empty are placeholders that are empty in most places, and why.
	empty []emptyPlaceholder
}

type emptyPlaceholder struct{ name, why string }

// keyPart is a placeholder, or text if there is none.
type keyPart struct {
	text, placeholder string
	mask              prefixes    // of the placeholder's value, if it is an address
	normal            *normal     // how the value is normalized; nil if it is not
	repeats           *repeatable // where a request may have several values; nil if nowhere
}

// newKeyTemplate parses a key. Backslashes before braces mean the braces, as
// everywhere in Caddy.
func newKeyTemplate(text string, ipv4Prefix, ipv6Prefix int) (*keyTemplate, error) {
	if ipv4Prefix < 0 || ipv4Prefix > 32 {
		return nil, fmt.Errorf("ipv4_prefix must be from 1 to 32, got %d", ipv4Prefix)
	}
	if ipv6Prefix < 0 || ipv6Prefix > 128 {
		return nil, fmt.Errorf("ipv6_prefix must be from 1 to 128, got %d", ipv6Prefix)
	}
	k := &keyTemplate{prefixes: prefixes{ipv4Prefix, ipv6Prefix}}
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("key %q: %w", text, err)
	}
	for i := range k.parts {
		p := &k.parts[i]
		if p.placeholder == "" {
			continue
		}
		p.mask, p.repeats = k.prefixes.of(p.placeholder), newRepeatable(p.placeholder)
		if addressPlaceholders[p.placeholder] {
			k.prefixes, k.early = p.mask, true
		}
		known, err := placeholder.Check(p.placeholder, " and give all clients one limit")
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", text, err)
		}
		if !known {
			k.unknown = append(k.unknown, p.placeholder)
		}
		why, err := checkFit(p.placeholder)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", text, err)
		}
		if why != "" {
			k.empty = append(k.empty, emptyPlaceholder{p.placeholder, why})
		}
	}
	k.several = k.placeholders() > 1
	k.nothing, _ = k.expand(caddy.NewEmptyReplacer(), &http.Request{URL: new(url.URL)})
	return k, nil
}

// normalize has values of hosts and paths normalized.
func (k *keyTemplate) normalize() {
	for i := range k.parts {
		k.parts[i].normal = normalOf(k.parts[i].placeholder)
	}
}

// newTextTemplate parses text that is no key: values stand in it as they are.
func newTextTemplate(option, text string) (*keyTemplate, error) {
	k := new(keyTemplate)
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("%s %q: %w", option, text, err)
	}
	for i := range k.parts {
		p := &k.parts[i]
		if err := placeholder.CheckOption(option, p.placeholder); err != nil {
			return nil, err
		}
		p.repeats = newRepeatable(p.placeholder)
	}
	return k, nil
}

// varies tells whether requests can have different keys.
func (k *keyTemplate) varies() bool {
	return slices.ContainsFunc(k.parts, func(p keyPart) bool { return p.placeholder != "" })
}

func (k *keyTemplate) parse(text string) error {
	var literal strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '}'):
			i++
			literal.WriteByte(text[i])
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return fmt.Errorf("a brace is open; write \\{ for a brace that begins no placeholder")
			}
			if end == 1 {
				return fmt.Errorf("{} names no placeholder")
			}
			if strings.Contains(text[i+1:i+end], "{") {
				return fmt.Errorf("a placeholder must not hold another")
			}
			if literal.Len() > 0 {
				k.parts = append(k.parts, keyPart{text: literal.String()})
				literal.Reset()
			}
			k.parts = append(k.parts, keyPart{placeholder: text[i+1 : i+end]})
			i += end
		default:
			literal.WriteByte(c)
		}
	}
	if literal.Len() > 0 {
		k.parts = append(k.parts, keyPart{text: literal.String()})
	}
	return nil
}

// reads reports whether the key or the plan has such a part.
func (z *Zone) reads(such func(*keyPart) bool) bool {
	for _, k := range []*keyTemplate{z.key, z.planOf} {
		for i := 0; k != nil && i < len(k.parts); i++ {
			if such(&k.parts[i]) {
				return true
			}
		}
	}
	return false
}

// expand makes the key of a request. The error is a *repeatedError, and the key is made
// of the first values then.
func (k *keyTemplate) expand(repl *caddy.Replacer, r *http.Request) (key string, err error) {
	switch len(k.parts) {
	case 0:
		return "", nil
	case 1:
		return k.parts[0].value(repl, r, k.joins)
	}
	key = k.join(func(p *keyPart) string {
		v, repeated := p.value(repl, r, k.joins)
		if repeated != nil {
			err = repeated
		}
		return v
	})
	return key, err
}

// join makes a key of the values of the parts.
func (k *keyTemplate) join(value func(*keyPart) string) string {
	var b strings.Builder
	for i := range k.parts {
		p := &k.parts[i]
		v := value(p)
		if k.several && p.placeholder != "" {
			b.WriteString(strconv.Itoa(len(v)))
			b.WriteByte(':')
		}
		b.WriteString(v)
	}
	return b.String()
}

func (p *keyPart) value(repl *caddy.Replacer, r *http.Request, join bool) (s string, err error) {
	if p.placeholder == "" {
		return p.text, nil
	}
	if p.normal != nil {
		return p.mask.apply(p.normal.of(placeholder.Text(repl, p.normal.from))), nil
	}
	if p.repeats != nil {
		s, err = p.repeats.one(r, join)
		return p.mask.apply(s), err
	}
	return p.mask.apply(placeholder.Text(repl, p.placeholder)), nil
}

// typed is the value of a request for which somebody has written this one.
func (p *keyPart) typed(value string) string {
	if p.normal != nil {
		value = p.normal.text(value)
	}
	if p.repeats != nil {
		value = p.repeats.clean(value)
	}
	return p.mask.apply(value)
}
