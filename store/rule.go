package store

import (
	"hash/maphash"
	"math"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/msgpack"
)

// Rule is a zone's limit, prepared for the request path: it was checked once, and everything
// that can be computed in advance has been. It may be used by many goroutines at once.
type Rule struct {
	zone      string
	algorithm algorithms.Algorithm
	counter   algorithms.Counter // the algorithm, if it is one
	limit     algorithms.Limit
	states    States
	zoneHash  uint64
	salt      uint64
	terms     uint64 // see Terms

	prepared atomic.Pointer[Prepared]
}

// Prepared are the numbers that the algorithm computes with.
type Prepared struct {
	Params algorithms.Params

	// Wire is the algorithm and its parameters in the form that scripts read: MessagePack.
	Wire string

	from, until int64 // when the parameters hold, in microseconds since 1970
}

// NewRule checks a limit and prepares it. Its error names the option, its value and what
// would be right.
//
// A zone that comes back with another salt starts from zero in a store that keeps its states in
// this process; other stores ignore the salt.
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
	r.counter, _ = algorithm.(algorithms.Counter)
	if algorithms.Prepays(limit) {
		limit.Location = nil // the name of the states has it
		r.terms = maphash.Comparable(seed, limit) ^ r.states.Hash
	}
	from, until := int64(math.MinInt64), int64(math.MaxInt64)
	if limit.Calendar != 0 { // then what At returns depends on the time
		until = from
	}
	r.prepared.Store(prepare(algorithm.Name(), params, from, until))
	return r, nil
}

func prepare(name string, params algorithms.Params, from, until int64) *Prepared {
	wire := msgpack.AppendText(nil, name)
	for _, p := range params {
		wire = msgpack.AppendInt(wire, p)
	}
	return &Prepared{Params: params, Wire: string(wire), from: from, until: until}
}

// At returns the numbers for a time in microseconds since 1970.
func (r *Rule) At(now int64) *Prepared {
	if p := r.prepared.Load(); p.from <= now && now < p.until {
		return p
	}
	return r.prepareAt(now)
}

func (r *Rule) prepareAt(now int64) *Prepared {
	params, from, until := algorithms.FixedWindow{}.PrepareAt(r.limit, time.UnixMicro(now))
	p := prepare(r.algorithm.Name(), params, from.UnixMicro(), until.UnixMicro())
	r.prepared.Store(p)
	return p
}

// Zone returns the zone's name.
func (r *Rule) Zone() string { return r.zone }

// Algorithm returns the algorithm that counts.
func (r *Rule) Algorithm() algorithms.Algorithm { return r.algorithm }

// Counter returns the algorithm if it is a Counter, and nil if not. That is faster than to ask for its
// type.
func (r *Rule) Counter() algorithms.Counter { return r.counter }

// Limit returns the limit that NewRule was given.
func (r *Rule) Limit() algorithms.Limit { return r.limit }

// Hold returns for how long units of the limit may be held that are charged ahead, or 0 if none are: see
// [algorithms.Counter].
func (r *Rule) Hold() time.Duration {
	if r.terms == 0 {
		return 0
	}
	return r.limit.Hold
}

// Terms returns a hash of all that units depend on which are charged ahead, with a random seed of this process. What was
// charged under one rule may be spent under another with the same terms. A config that is loaded again has other rules, and
// a limit with placeholders may have another one for each request. It is 0 if Hold is.
func (r *Rule) Terms() uint64 { return r.terms }

// States returns the states in which the rule counts.
func (r *Rule) States() States { return r.states }

// ID returns the ID of the rule's states.
func (r *Rule) ID() string { return r.states.ID }

// ZoneHash returns a hash of the zone's name, made like [States].Hash.
func (r *Rule) ZoneHash() uint64 { return r.zoneHash }

// Salt returns the salt that NewRule was given.
func (r *Rule) Salt() uint64 { return r.salt }

// Escape returns text in a form that can be put between separators. Letters, digits and
// "-._~" stay; every other byte becomes % and two hex digits. Different texts have different
// results.
func Escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Overruled returns the rule that holds for a key with the limit of an override, instead of this rule. It is nil if the limit
// is that of another algorithm, or is not valid here.
func (r *Rule) Overruled(by *Override) *Rule {
	if by.Algorithm != r.algorithm.Name() {
		return nil
	}
	made, _ := NewRule(r.zone, r.algorithm, by.Limit.Over(r.limit), r.salt)
	return made
}
