package respond

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// The styles that the option headers takes.
const (
	HeadersDraft10    = "draft-10"
	headersXRateLimit = "x-ratelimit"
	headersSpring     = "spring"
	headersOff        = "off"
)

// field is a header that describes limits. Retry-After is not one of them, because it is a
// field of HTTP and sent with every style.
type field uint8

const (
	rateLimitField field = iota
	policyField
	limitField
	remainingField
	resetField
	retryAfterField
	replenishField
	burstField
	requestedField
	fields
)

// standard are the names of the fields in their styles.
var standard = [fields]string{
	rateLimitField:  "RateLimit",
	policyField:     "RateLimit-Policy",
	limitField:      "X-RateLimit-Limit",
	remainingField:  "X-RateLimit-Remaining",
	resetField:      "X-RateLimit-Reset",
	retryAfterField: "X-RateLimit-Retry-After",
	replenishField:  "X-RateLimit-Replenish-Rate",
	burstField:      "X-RateLimit-Burst-Capacity",
	requestedField:  "X-RateLimit-Requested-Tokens",
}

// styles are the fields of each style.
var styles = map[string][]field{
	HeadersDraft10:    {rateLimitField, policyField},
	headersXRateLimit: {limitField, remainingField, resetField, retryAfterField},
	headersSpring:     {remainingField, replenishField, burstField, requestedField},
	headersOff:        nil,
}

// Fields are the headers that a handler sends, with their names in the form of
// http.Header's keys.
type Fields struct {
	sent  []field
	names []string // of sent
}

// NewFields resolves the options headers and header_name.
func NewFields(chosen []string, renames map[string]string) (f Fields, err error) {
	for i, style := range chosen {
		switch {
		case slices.Contains(chosen[:i], style):
			return f, fmt.Errorf("headers names %s twice", style)
		case style == headersOff && len(chosen) > 1:
			return f, fmt.Errorf("headers off excludes other styles, got %s", strings.Join(chosen, " "))
		}
		for _, one := range styles[style] {
			if !slices.Contains(f.sent, one) {
				f.sent = append(f.sent, one)
				f.names = append(f.names, http.CanonicalHeaderKey(standard[one]))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(renames)) {
		if err := f.rename(name, renames[name], chosen); err != nil {
			return f, err
		}
	}
	for i, name := range f.names {
		if slices.Contains(f.names[:i], name) {
			return f, fmt.Errorf("header_name %s: the name %s is taken", standard[f.sent[i]], name)
		}
	}
	return f, nil
}

// rename gives the field that has a name in one of the styles another one.
func (f *Fields) rename(name, other string, chosen []string) error {
	i := slices.IndexFunc(f.sent, func(one field) bool { return strings.EqualFold(standard[one], name) })
	switch {
	case i < 0:
		var all []string
		for _, one := range f.sent {
			all = append(all, standard[one])
		}
		return fmt.Errorf("header_name %s: headers %s has no such field, it has %s",
			name, strings.Join(chosen, " "), cmp.Or(strings.Join(all, ", "), "none"))
	case f.names[i] != http.CanonicalHeaderKey(name):
		return fmt.Errorf("header_name %s already specified", standard[f.sent[i]])
	case other == "" || strings.IndexFunc(other, placeholder.NotInFieldName) >= 0:
		return fmt.Errorf("header_name %s: %q is not the name of a header", name, other)
	}
	f.names[i] = http.CanonicalHeaderKey(other)
	return config.NotHTTP("header_name "+standard[f.sent[i]], other)
}
