package caddyratelimit

import (
	"fmt"
	"slices"
	"strings"
)

// Keys that people write, where requests would bring values.

// given is the key that a request with this value has. Of a key that is more than one
// placeholder it is the whole key: what it is made of is not to be seen in it.
func (k *keyTemplate) given(key string) string {
	if len(k.parts) == 1 && k.parts[0].placeholder != "" {
		return k.parts[0].typed(key)
	}
	return key
}

// name is the form of a name in which text of the template is compared with others.
func (k *keyTemplate) name(text string) string {
	if len(k.parts) > 1 && slices.ContainsFunc(k.parts, func(p keyPart) bool { return p.normal != nil }) {
		return strings.ToLower(text)
	}
	return k.given(text)
}

// fill is the key of a request for which the placeholders have these values.
func (k *keyTemplate) fill(values []string) (string, error) {
	if n := k.placeholders(); len(values) != n {
		return "", fmt.Errorf("it has %d placeholders, got %d parts", n, len(values))
	}
	return k.join(func(p *keyPart) string {
		if p.placeholder == "" {
			return p.text
		}
		v := values[0]
		values = values[1:]
		return p.typed(v)
	}), nil
}

// placeholders is how many values the key is made of.
func (k *keyTemplate) placeholders() (n int) {
	for _, p := range k.parts {
		if p.placeholder != "" {
			n++
		}
	}
	return n
}
