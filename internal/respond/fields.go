package respond

import (
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
	byField [fields]string // the names of all fields that are sent
	sent    []field
	names   []string // of sent
}

// NewFields resolves the options headers and header_name.
func NewFields(chosen []string, renames map[string]string) (f Fields, err error) {
	for i, style := range chosen {
		inStyle, ok := styles[style]
		switch {
		case !ok:
			return f, fmt.Errorf("headers must be draft-10, x-ratelimit, spring or off, got %q", style)
		case slices.Contains(chosen[:i], style):
			return f, fmt.Errorf("headers names %s twice", style)
		case style == headersOff && len(chosen) > 1:
			return f, fmt.Errorf("headers off excludes other styles, got %s", strings.Join(chosen, " "))
		}
		for _, one := range inStyle {
			if !slices.Contains(f.sent, one) {
				f.sent = append(f.sent, one)
				f.byField[one] = http.CanonicalHeaderKey(standard[one])
			}
		}
	}
	renamed := make(map[field]bool)
	for _, name := range slices.Sorted(maps.Keys(renames)) {
		which := f.find(name)
		switch {
		case renamed[which]:
			return f, fmt.Errorf("header_name %s already specified", standard[which])
		case which == fields:
			return f, fmt.Errorf("header_name %s: headers %s has no such field, it has %s",
				name, strings.Join(chosen, " "), strings.Join(f.all(), ", "))
		case renames[name] == "" || strings.IndexFunc(renames[name], placeholder.NotInFieldName) >= 0:
			return f, fmt.Errorf("header_name %s: %q is not the name of a header", name, renames[name])
		}
		if err := config.NotHTTP("header_name "+standard[which], renames[name]); err != nil {
			return f, err
		}
		f.byField[which], renamed[which] = http.CanonicalHeaderKey(renames[name]), true
	}
	for _, one := range f.sent {
		if name := f.byField[one]; slices.Contains(f.names, name) {
			return f, fmt.Errorf("header_name %s: the name %s is taken", standard[one], name)
		}
		f.names = append(f.names, f.byField[one])
	}
	return f, nil
}

// find returns the field that has a name in its style, or fields if that is not sent.
func (f *Fields) find(name string) field {
	for _, one := range f.sent {
		if strings.EqualFold(standard[one], name) {
			return one
		}
	}
	return fields
}

func (f *Fields) all() (names []string) {
	for _, one := range f.sent {
		names = append(names, standard[one])
	}
	if names == nil {
		names = []string{"none"}
	}
	return names
}
