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

// styles are the headers that describe limits, for each style. Retry-After is not one of them, because it is a field
// of HTTP and sent with every style.
var styles = map[string][]string{
	"draft-11":    {"RateLimit", "RateLimit-Policy"},
	"draft-10":    {"RateLimit", "RateLimit-Policy"}, // with the same values
	"x-ratelimit": {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Retry-After"},
	"spring": {
		"X-RateLimit-Remaining", "X-RateLimit-Replenish-Rate", "X-RateLimit-Burst-Capacity", "X-RateLimit-Requested-Tokens",
	},
}

// Fields are the headers that a handler sends.
type Fields struct {
	sent  []string // by their names in their styles
	names []string // by those under which they are sent, in the form of http.Header's keys
}

// NewFields resolves the options headers and header_name.
func NewFields(chosen []string, renames map[string]string) (f Fields, err error) {
	for i, style := range chosen {
		switch {
		case slices.Contains(chosen[:i], style):
			return f, fmt.Errorf("headers names %s twice", style)
		case style == "off" && len(chosen) > 1:
			return f, fmt.Errorf("headers off excludes other styles, got %s", strings.Join(chosen, " "))
		}
		for _, one := range styles[style] {
			if !slices.Contains(f.sent, one) {
				f.sent = append(f.sent, one)
				f.names = append(f.names, http.CanonicalHeaderKey(one))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(renames)) {
		other := renames[name]
		i := slices.IndexFunc(f.sent, func(one string) bool { return strings.EqualFold(one, name) })
		switch {
		case i < 0:
			return f, fmt.Errorf("header_name %s: headers %s has no such field, it has %s",
				name, strings.Join(chosen, " "), cmp.Or(strings.Join(f.sent, ", "), "none"))
		case f.names[i] != http.CanonicalHeaderKey(name):
			return f, fmt.Errorf("header_name %s already specified", f.sent[i])
		case other == "" || strings.IndexFunc(other, placeholder.NotInFieldName) >= 0:
			return f, fmt.Errorf("header_name %s: %q is not the name of a header", name, other)
		}
		f.names[i] = http.CanonicalHeaderKey(other)
		if err := config.NotHTTP("header_name "+f.sent[i], other); err != nil {
			return f, err
		}
	}
	for i, name := range f.names {
		if slices.Contains(f.names[:i], name) {
			return f, fmt.Errorf("header_name %s: the name %s is taken", f.sent[i], name)
		}
	}
	return f, nil
}

// with returns the fields with those of another handler. The receiver may be nil.
func (f *Fields) with(more *Fields) *Fields {
	if f == nil || f == more {
		return more
	}
	both := &Fields{sent: slices.Clone(f.sent), names: slices.Clone(f.names)}
	for i, name := range more.names {
		if !slices.Contains(f.names, name) {
			both.sent, both.names = append(both.sent, more.sent[i]), append(both.names, name)
		}
	}
	return both
}

// Sends reports whether a header, in its canonical form, is one of the fields.
func (f *Fields) Sends(name string) bool { return slices.Contains(f.names, name) }
