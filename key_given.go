package caddyratelimit

import "fmt"

// Keys that people write, where requests would bring values.

// given is the key that a request with this value has. Of a key that is more than one
// placeholder it is the whole key: what it is made of is not to be seen in it.
func (k *keyTemplate) given(key string) string {
	if len(k.parts) == 1 && k.parts[0].placeholder != "" {
		return k.parts[0].mask.apply(key)
	}
	return key
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
		return p.mask.apply(v)
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
