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
	values, whole := k.Values(text)
	switch {
	case whole:
		return k.FromValues(values)
	case len(k.placeholders) == 1:
		meant, err := k.FromValues([]string{text})
		if err == nil {
			err = fmt.Errorf("all of its keys have the form %s: did you mean %q?", k.Form(), meant)
		}
		return "", err
	}
	return "", k.errParts([]string{text})
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
	if len(values) != len(k.placeholders) {
		return "", k.errParts(values)
	}
	var b []byte
	for i := range k.Parts {
		p := &k.Parts[i]
		value := p.text
		if p.Placeholder != "" {
			if value, err = p.fromText(values[0]); err != nil {
				return "", err
			}
			values = values[1:]
		}
		b = k.appendValue(b, p, value)
	}
	return string(b), nil
}

// errParts says which parts the key has, of which these were given.
func (k *Template) errParts(given []string) error {
	if !k.Varies() {
		return fmt.Errorf("it has no key, because all requests share one limit: give none, got %q", strings.Join(given, " "))
	}
	return fmt.Errorf("the key is %s: give each part, got %d", strings.Join(k.PartNames(), " "), len(given))
}

// PartNames returns the placeholders of the template, as they are written in a Caddyfile.
func (k *Template) PartNames() (names []string) {
	for _, p := range k.placeholders {
		names = append(names, "{"+placeholder.Short(p.Placeholder)+"}")
	}
	return names
}

// Form returns the template as it is written in a Caddyfile, with short names.
func (k *Template) Form() (form string) {
	names := k.PartNames()
	for _, p := range k.Parts {
		if form += p.text; p.Placeholder != "" {
			form, names = form+names[0], names[1:]
		}
	}
	return form
}

// Values returns the values of the placeholders in a key. If the text is not a whole key of the
// template, whole is false, and the values are those until the text differs or ends.
func (k *Template) Values(key string) (values []string, whole bool) {
	for i, p := range k.Parts {
		value, rest, ok := "", "", true
		switch {
		case p.Placeholder == "":
			rest, ok = strings.CutPrefix(key, p.text)
		case k.lengthPrefixed:
			value, rest, ok = cutValue(key)
		default: // all but the text behind it
			if i+1 < len(k.Parts) {
				rest = k.Parts[i+1].text
			}
			value, ok = strings.CutSuffix(key, rest)
		}
		if p.Placeholder != "" && (ok || value != "") {
			values = append(values, value)
		}
		if !ok {
			return values, false
		}
		key = rest
	}
	return values, key == ""
}

// cutValue cuts off a value that follows its length. If the text is too short, the value is its beginning, and ok is false.
func cutValue(text string) (value, rest string, ok bool) {
	digits, rest, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case err != nil || strconv.FormatUint(n, 10) != digits || len(digits) == len(text):
		return "", "", false
	case int(n) > len(rest):
		return rest, "", false
	}
	return rest[:n], rest[n:], true
}

// HasPart reports whether a key has the value that people write as this text.
func (k *Template) HasPart(key, text string) bool {
	values, _ := k.Values(key)
	for i, value := range values {
		if written, err := k.placeholders[i].fromText(text); err == nil && written == value {
			return true
		}
	}
	return false
}

// Address returns the client's address in a key, which may be a network. It is not valid if the key
// has none.
func (k *Template) Address(key string) (address netip.Prefix) {
	values, _ := k.Values(key)
	for i, value := range values {
		if addressPlaceholders[k.placeholders[i].Placeholder] {
			return ParseAddress(value)
		}
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
	case len(k.Parts) > 1 && slices.ContainsFunc(k.Parts, func(p Part) bool { return p.spelled }):
		return strings.ToLower(text)
	case len(k.Parts) == 1 && k.Parts[0].Placeholder != "":
		return k.Parts[0].clean(text)
	}
	return text
}

// fromText returns the value that a request would have for this text.
func (p *Part) fromText(text string) (string, error) {
	if addressPlaceholders[p.Placeholder] {
		return p.mask.fromText(text)
	}
	return p.mask.apply(p.clean(text)), nil
}
