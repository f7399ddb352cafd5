package adminapi

import "strings"

// Group is a group whose requests have an override.
type Group struct {
	// By is the placeholder, as it is written in a Caddyfile.
	By string `json:"by"`

	// Value is the value of the placeholder, with \ufffd for each byte that is not UTF-8.
	Value string `json:"value"`

	// ValueBase64 is the exact value. It is absent if Value is exact.
	ValueBase64 string `json:"value_base64,omitempty"`

	// Unused says that the option group of the zone has another placeholder, or is missing, so that the override has no
	// effect.
	Unused bool `json:"unused,omitempty"`
}

// NewGroup returns a group.
func NewGroup(by, value string) *Group {
	text := NewKeyText(value, len(value))
	return &Group{By: by, Value: text.Key, ValueBase64: text.KeyBase64}
}

// String returns the group as it is listed among keys.
func (g *Group) String() string { return g.By + " " + strings.ToValidUTF8(g.Value, "\ufffd") }
