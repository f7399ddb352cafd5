package key

import (
	"fmt"
	"slices"
	"strings"
)

// Keys that people write, where requests would bring values.

// FromText is the key that a request with this value has. Of a key that is more than one
// placeholder it is the whole key: what it is made of is not to be seen in it.
func (k *Template) FromText(key string) string {
	if len(k.Parts) == 1 && k.Parts[0].Placeholder != "" {
		return k.Parts[0].typed(key)
	}
	return key
}

// NormalizeName is the form of a name in which text of the template is compared with others.
func (k *Template) NormalizeName(text string) string {
	if len(k.Parts) > 1 && slices.ContainsFunc(k.Parts, func(p Part) bool { return p.normal != nil }) {
		return strings.ToLower(text)
	}
	return k.FromText(text)
}

// FromValues is the key of a request for which the placeholders have these values.
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
		return p.typed(v)
	}), nil
}

// NumPlaceholders is how many values the key is made of.
func (k *Template) NumPlaceholders() (n int) {
	for _, p := range k.Parts {
		if p.Placeholder != "" {
			n++
		}
	}
	return n
}
