package key

import (
	"fmt"
	"slices"
	"strings"
)

// This file makes keys from text that people write, instead of the values of a request.

// FromText returns the key of a request whose placeholder has this value, if the template is just
// one placeholder. Otherwise the text must be the whole key, and is returned as it is.
func (k *Template) FromText(text string) string {
	if len(k.Parts) == 1 && k.Parts[0].Placeholder != "" {
		return k.Parts[0].fromText(text)
	}
	return text
}

// NormalizeName returns a name, such as that of a plan, in the form that the text of a request is
// normalized to, so that the two can be compared.
func (k *Template) NormalizeName(text string) string {
	if len(k.Parts) > 1 && slices.ContainsFunc(k.Parts, func(p Part) bool { return p.normal != nil }) {
		return strings.ToLower(text)
	}
	return k.FromText(text)
}

// FromValues returns the key of a request whose placeholders have these values.
func (k *Template) FromValues(values []string) (string, error) {
	if n := k.NumPlaceholders(); len(values) != n {
		return "", fmt.Errorf("it has %d placeholders, got %d parts", n, len(values))
	}
	return k.join(func(p *Part) string {
		if p.Placeholder == "" {
			return p.text
		}
		v := values[0]
		values = values[1:]
		return p.fromText(v)
	}), nil
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
