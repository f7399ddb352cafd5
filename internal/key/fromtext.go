package key

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// This file makes keys from text that people write, instead of the values of a request, and finds
// the values in a key. A key that no request can have is an error.

// FromText returns the key that people write as one text. If the template is just one placeholder,
// the text is its value. Otherwise it is the whole key.
func (k *Template) FromText(text string) (string, error) {
	if len(k.Parts) == 1 && k.Parts[0].Placeholder != "" {
		return k.Parts[0].fromText(text)
	}
	values, whole := k.Values(text)
	if whole {
		return k.FromValues(values)
	}
	switch k.NumPlaceholders() {
	case 0:
		return "", fmt.Errorf("it has no key, because all requests share one limit: give none, got %q", text)
	case 1:
		example := k.join(func(p *Part) string {
			if p.Placeholder == "" {
				return p.text
			}
			return text
		})
		return "", fmt.Errorf("all of its keys have the form %s: did you mean %q?", k.Form(), example)
	}
	return "", k.errParts()
}

// FromKey returns a key that is written as it is, unless it is none of the template's.
func (k *Template) FromKey(key string) (string, error) {
	if _, whole := k.Values(key); !whole {
		return "", fmt.Errorf("no request has this key: all keys have the form %s", k.Form())
	}
	return key, nil
}

// FromValues returns the key of a request whose placeholders have these values.
func (k *Template) FromValues(values []string) (key string, err error) {
	if n := k.NumPlaceholders(); len(values) != n {
		if n == 0 {
			return "", fmt.Errorf("it has no key, because all requests share one limit: give none, got %q", strings.Join(values, " "))
		}
		return "", fmt.Errorf("%w, got %d", k.errParts(), len(values))
	}
	key = k.join(func(p *Part) string {
		if p.Placeholder == "" {
			return p.text
		}
		v, invalid := p.fromText(values[0])
		if invalid != nil && err == nil {
			err = invalid
		}
		values = values[1:]
		return v
	})
	return key, err
}

// errParts says which parts the key has.
func (k *Template) errParts() error {
	names := k.PartNames()
	switch len(names) {
	case 1:
		return fmt.Errorf("the key has 1 part, %s", names[0])
	case 2:
		return fmt.Errorf("the key has 2 parts: %s; give both", strings.Join(names, " "))
	}
	return fmt.Errorf("the key has %d parts: %s; give all of them", len(names), strings.Join(names, " "))
}

// PartNames returns the placeholders of the template, as they are written in a Caddyfile.
func (k *Template) PartNames() (names []string) {
	for _, p := range k.Parts {
		if p.Placeholder != "" {
			names = append(names, "{"+placeholder.Short(p.Placeholder)+"}")
		}
	}
	return names
}

// Form returns the template as it is written in a Caddyfile, with short names.
func (k *Template) Form() string {
	var b strings.Builder
	for _, p := range k.Parts {
		if p.Placeholder == "" {
			b.WriteString(p.text)
		} else {
			b.WriteString("{" + placeholder.Short(p.Placeholder) + "}")
		}
	}
	return b.String()
}

// Values returns the values of the placeholders in a key. If the text is not a whole key of the
// template, whole is false, and the values are those until the text differs or ends.
func (k *Template) Values(key string) (values []string, whole bool) {
	switch {
	case len(k.Parts) == 1 && k.Parts[0].Placeholder != "":
		return []string{key}, true
	case !k.lengthPrefixed:
		return k.valueBetweenText(key)
	}
	for _, p := range k.Parts {
		if p.Placeholder == "" {
			rest, ok := strings.CutPrefix(key, p.text)
			if !ok {
				return values, false
			}
			key = rest
			continue
		}
		digits, rest, ok := strings.Cut(key, ":")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 0 || strconv.Itoa(n) != digits {
			return values, false
		}
		if n > len(rest) {
			return append(values, rest), false
		}
		values, key = append(values, rest[:n]), rest[n:]
	}
	return values, key == ""
}

// valueBetweenText returns the value of the only placeholder, if the template has one.
func (k *Template) valueBetweenText(key string) (values []string, whole bool) {
	before, after, varies := "", "", false
	for _, p := range k.Parts {
		switch {
		case p.Placeholder != "":
			varies = true
		case varies:
			after += p.text
		default:
			before += p.text
		}
	}
	if !varies {
		return nil, key == before
	}
	rest, begins := strings.CutPrefix(key, before)
	value, ends := strings.CutSuffix(rest, after)
	if !begins || !ends {
		return nil, false
	}
	return []string{value}, true
}

// HasPart reports whether a key has the value that people write as this text.
func (k *Template) HasPart(key, text string) bool {
	values, _ := k.Values(key)
	i := 0
	for _, p := range k.Parts {
		if p.Placeholder == "" || i == len(values) {
			continue
		}
		if written, err := p.fromText(text); err == nil && written == values[i] {
			return true
		}
		i++
	}
	return false
}

// Address returns the client's address in a key, which may be a network. It is not valid if the key
// has none.
func (k *Template) Address(key string) (address netip.Prefix) {
	values, _ := k.Values(key)
	i := 0
	for _, p := range k.Parts {
		if p.Placeholder == "" || i == len(values) {
			continue
		}
		if addressPlaceholders[p.Placeholder] {
			return ParseAddress(values[i])
		}
		i++
	}
	return address
}

// ParseAddress parses an address or a network. It is not valid if the text is neither.
func ParseAddress(text string) netip.Prefix {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen())
	}
	network, _ := netip.ParsePrefix(text)
	return network
}

// NormalizeName returns a name, such as that of a plan, in the form that the text of a request is
// normalized to, so that the two can be compared.
func (k *Template) NormalizeName(text string) string {
	switch {
	case len(k.Parts) > 1 && slices.ContainsFunc(k.Parts, func(p Part) bool { return p.normal != nil }):
		return strings.ToLower(text)
	case len(k.Parts) == 1 && k.Parts[0].Placeholder != "":
		return k.Parts[0].clean(text)
	}
	return text
}

// NumPlaceholders returns the number of placeholders in the template.
func (k *Template) NumPlaceholders() (n int) {
	for _, p := range k.Parts {
		if p.Placeholder != "" {
			n++
		}
	}
	return n
}

// fromText returns the value that a request would have for this text.
func (p *Part) fromText(text string) (string, error) {
	if addressPlaceholders[p.Placeholder] {
		return p.mask.fromText(text)
	}
	return p.clean(text), nil
}

// clean returns a value in the form that the values of requests have in keys.
func (p *Part) clean(value string) string {
	if p.normal != nil {
		value = p.normal.fromText(value)
	}
	if p.repeatable != nil {
		value = p.repeatable.clean(value)
	}
	return p.mask.apply(value)
}
