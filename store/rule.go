package store

import (
	"encoding/binary"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Rule is a zone's limit made ready for the request path: checked once, with all that
// can be worked out ahead. It does not change.
type Rule struct {
	zone      string
	algorithm algorithms.Algorithm
	params    algorithms.Params
	limit     algorithms.Limit
	id        string
	wire      string
	salt      uint64
}

// NewRule checks a limit and makes it ready. Its error names the option, its value and
// what would be right.
//
// The salt sets apart generations of a zone whose states are kept by this process
// alone: a zone that comes back with another salt starts anew.
func NewRule(zone string, algorithm algorithms.Algorithm, limit algorithms.Limit, salt uint64) (*Rule, error) {
	params, err := algorithm.Prepare(limit)
	if err != nil {
		return nil, err
	}
	wire := make([]byte, 0, len(params)*8)
	for _, p := range params {
		wire = binary.BigEndian.AppendUint64(wire, uint64(p))
	}
	return &Rule{
		zone:      zone,
		algorithm: algorithm,
		params:    params,
		limit:     limit,
		id:        Escape(zone) + ":" + Escape(algorithm.Name()),
		wire:      string(wire),
		salt:      salt,
	}, nil
}

// Zone is the zone's name.
func (r *Rule) Zone() string { return r.zone }

// Algorithm is how the zone counts.
func (r *Rule) Algorithm() algorithms.Algorithm { return r.algorithm }

// Params are the numbers that the algorithm computes with.
func (r *Rule) Params() *algorithms.Params { return &r.params }

// Limit is the limit as it was written.
func (r *Rule) Limit() algorithms.Limit { return r.limit }

// ID names the states that rules share: zone and algorithm, escaped. Limits may change
// under a state; another algorithm would misread it.
func (r *Rule) ID() string { return r.id }

// Wire are the parameters in the form that scripts read.
func (r *Rule) Wire() string { return r.wire }

// Salt tells generations of the zone apart.
func (r *Rule) Salt() uint64 { return r.salt }

// Escape writes text so that it can stand between separators: letters, digits and
// "-._~" stay, every other byte becomes % and two hex digits. What differs before
// differs after.
func Escape(text string) string {
	for i := range len(text) {
		if !plain(text[i]) {
			return escape(text, i)
		}
	}
	return text
}

func escape(text string, from int) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(text) + 16)
	b.WriteString(text[:from])
	for i := from; i < len(text); i++ {
		if c := text[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
