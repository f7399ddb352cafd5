package store

import (
	"encoding/binary"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Rule is a zone's limit made ready for the request path: checked once, with all that
// can be worked out ahead.
type Rule struct {
	zone      string
	algorithm algorithms.Algorithm
	limit     algorithms.Limit
	states    States
	zoneHash  uint64
	salt      uint64
	dated     algorithms.Dated // nil unless the parameters depend on the date
	prepared  atomic.Pointer[Prepared]
	shared    atomic.Pointer[share]
}

// Prepared are the numbers that the algorithm computes with.
type Prepared struct {
	Params algorithms.Params

	// Wire are the algorithm and its parameters in the form that scripts read.
	Wire string

	until int64 // microseconds since 1970; for ever if not dated
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
	r := &Rule{
		zone:      zone,
		algorithm: algorithm,
		limit:     limit,
		states:    statesOf(zone, algorithm.Name(), Escape(algorithm.Family(limit))),
		zoneHash:  hash(zone),
		salt:      salt,
	}
	if limit.Calendar != 0 {
		r.dated, _ = algorithm.(algorithms.Dated)
	}
	until := int64(math.MaxInt64)
	if r.dated != nil {
		until = 0
	}
	r.prepared.Store(prepare(algorithm.Name(), params, until))
	return r, nil
}

func prepare(name string, params algorithms.Params, until int64) *Prepared {
	wire := append(make([]byte, 0, len(name)+1+len(params)*8), name...)
	wire = append(wire, 0)
	for _, p := range params {
		wire = binary.BigEndian.AppendUint64(wire, uint64(p))
	}
	return &Prepared{Params: params, Wire: string(wire), until: until}
}

// At is what the algorithm computes with at a time, in microseconds since 1970.
func (r *Rule) At(now int64) *Prepared {
	p := r.prepared.Load()
	if now >= p.until {
		params, until := r.dated.PrepareAt(r.limit, time.UnixMicro(now))
		p = prepare(r.algorithm.Name(), params, until.UnixMicro())
		r.prepared.Store(p)
	}
	return p
}

// Dated says that it matters which time At gets.
func (r *Rule) Dated() bool { return r.dated != nil }

// Zone is the zone's name.
func (r *Rule) Zone() string { return r.zone }

// Algorithm is how the zone counts.
func (r *Rule) Algorithm() algorithms.Algorithm { return r.algorithm }

// Limit is the limit as it was written.
func (r *Rule) Limit() algorithms.Limit { return r.limit }

// States are the states that the rule counts in.
func (r *Rule) States() States { return r.states }

// ID is that of the rule's states.
func (r *Rule) ID() string { return r.states.ID }

// ZoneHash is a hash of the zone's name, as that of States is one of the ID.
func (r *Rule) ZoneHash() uint64 { return r.zoneHash }

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
