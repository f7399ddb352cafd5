package key

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// NewGroup parses the placeholder by whose value operators see the requests of a zone. Addresses are cut to prefixes as in keys.
func NewGroup(text string) (*Template, error) {
	k := new(Template)
	if err := k.parse(text); err != nil {
		return nil, fmt.Errorf("group %q: %w", text, err)
	}
	if len(k.Parts) != 1 || k.Parts[0].Placeholder == "" {
		return nil, fmt.Errorf("group takes one placeholder, such as {header.User-Agent}, in JSON {http.request.header.User-Agent}, got %q", text)
	}
	p := &k.Parts[0]
	if err := placeholder.CheckOption("group", p.Placeholder); err != nil {
		return nil, err
	}
	why, err := checkSuitable(p.Placeholder, "so that no group would have many requests")
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", text, err)
	}
	if why != "" {
		k.OftenEmpty = []EmptyPlaceholder{{p.Placeholder, why}}
	}
	p.mask, p.Repeatable = k.Prefixes.forPlaceholder(p.Placeholder), newRepeatable(p.Placeholder)
	return k, nil
}
