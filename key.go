package caddyratelimit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// keyTemplate makes a request's key.
type keyTemplate struct {
	parts []keyPart

	// several says that there is more than one placeholder. Then each value is written
	// with its length, so that no value can imitate its neighbours.
	several bool

	// prefixes are what addresses in the key are cut to.
	prefixes prefixes

	// early says that the key has an address that is not to be trusted in TLS early data.
	early bool

	// nothing is the key of a request for which all placeholders are empty. No other
	// request has it.
	nothing string

	// unknown are placeholders that only another module can know.
	unknown []string
}

// keyPart is a placeholder, or text if there is none.
type keyPart struct {
	text, placeholder string
	mask              prefixes // of the placeholder's value, if it is an address
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
		p.mask = k.prefixes.of(p.placeholder)
		if addressPlaceholders[p.placeholder] {
			k.prefixes, k.early = p.mask, true
		}
		known, err := checkPlaceholder(p.placeholder, " and give all clients one limit")
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", text, err)
		}
		if !known {
			k.unknown = append(k.unknown, p.placeholder)
		}
	}
	k.several = k.placeholders() > 1
	k.nothing = k.expand(caddy.NewEmptyReplacer())
	return k, nil
}

// newTextTemplate parses text that is no key: values stand in it as they are.
func newTextTemplate(option, text string) (*keyTemplate, error) {
	k := new(keyTemplate)
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("%s %q: %w", option, text, err)
	}
	for _, p := range k.parts {
		if err := checkVarying(option, p.placeholder); err != nil {
			return nil, err
		}
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

// expand makes the key of a request.
func (k *keyTemplate) expand(repl *caddy.Replacer) string {
	if len(k.parts) == 0 {
		return ""
	}
	if len(k.parts) == 1 {
		return k.parts[0].value(repl)
	}
	return k.join(func(p *keyPart) string { return p.value(repl) })
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

func (p *keyPart) value(repl *caddy.Replacer) string {
	if p.placeholder == "" {
		return p.text
	}
	v, _ := repl.Get(p.placeholder)
	s, ok := v.(string)
	if !ok {
		s = caddy.ToString(v)
	}
	return p.mask.apply(s)
}
