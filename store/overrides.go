package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Overrider is implemented by stores that keep overrides of single keys beside their states.
// A setting holds for the whole fleet from the next check on that has
// [KeyRules].Overrides, and for no other. It belongs to zone and key, whatever the rule's
// numbers are; of the rule it takes the zone and, for a limit, the algorithm.
//
// All of them ask the store's backend at once, and fail as Take does.
type Overrider interface {
	// Set gives a key a setting in place of the one it has.
	Set(ctx context.Context, rule *Rule, key string, setting Override) error

	// Get returns the setting of a key, with what is left of its time. Its kind is KindNone
	// if it has none.
	Get(ctx context.Context, rule *Rule, key string) (Override, error)

	// Clear takes the setting of a key away, whatever it is.
	Clear(ctx context.Context, rule *Rule, key string) error

	// Unban ends a ban, be it a setting or that of a key that was refused too often, and
	// forgets refusals and earlier bans. Another setting stays. Who remembers refusals, for
	// zones without settings, may remember the ban for that moment.
	Unban(ctx context.Context, rule *Rule, key string) error
}

// Kind says what a setting does.
type Kind uint8

const (
	KindNone   Kind = iota
	KindExempt      // the key passes, and is not counted
	KindBanned      // the key is refused, and is not counted
	KindLimit       // the key has a limit of its own
)

var kinds = [...]string{KindNone: "none", KindExempt: "exempt", KindBanned: "banned", KindLimit: "limit"}

// String is the kind's name.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Override is what holds for one key in place of the zone's limit.
type Override struct {
	Kind Kind

	// Limit is the limit of KindLimit, with the algorithm of the rule. What it does not say
	// of windows, modes and waits is as the rule's limit says; its burst, if it has none, is
	// its events. A window of the calendar and a lease can only be the rule's. In zones with
	// plans of several algorithms it holds where the request's plan has this one. It counts
	// in the states of its family, as every limit does.
	Limit algorithms.Limit

	// Note is for people, such as the name of the plan that the limit is of. At most
	// MaxNote bytes.
	Note string

	// For is how long it holds: at least MinOverride and at most algorithms.MaxWindow, in
	// microseconds. 0: until it is cleared.
	For time.Duration
}

const (
	// MaxNote is how long a note may be.
	MaxNote = 1024

	// MinOverride is the shortest time a setting may hold.
	MinOverride = time.Second
)

// PreparedOverride is a setting made ready for a rule.
type PreparedOverride struct {
	Override
	algorithm string
	params    algorithms.Params
	events    bool   // the window is that of the rule: only the first parameter is its own
	states    States // unless they are the rule's
	told      string // as [Rule.By] takes it
}

// PrepareOverride checks a setting and makes it ready. Its error names the field, its value and what
// would be right.
func (r *Rule) PrepareOverride(s Override) (*PreparedOverride, error) {
	s.For = s.For.Truncate(time.Microsecond)
	switch {
	case s.Kind == KindNone || int(s.Kind) >= len(kinds):
		return nil, fmt.Errorf("a setting must be %s, %s or %s, got %s", KindExempt, KindBanned, KindLimit, s.Kind)
	case s.Kind != KindLimit && s.Limit != algorithms.Limit{}:
		return nil, fmt.Errorf("a setting that is %s has no limit", s.Kind)
	case s.For != 0 && (s.For < MinOverride || s.For > algorithms.MaxWindow):
		return nil, fmt.Errorf("a setting must hold from %v to %.0fd, or 0 for until it is cleared, got %v", MinOverride, algorithms.MaxWindow.Hours()/24, s.For)
	case len(s.Note) > MaxNote:
		return nil, fmt.Errorf("the note of a setting must be at most %d bytes, got %d", MaxNote, len(s.Note))
	}
	o := &PreparedOverride{Override: s, algorithm: r.algorithm.Name()}
	if s.Kind != KindLimit {
		return o, nil
	}
	l := over(s.Limit, r.limit)
	if l.Calendar != 0 && (l.Calendar != r.limit.Calendar || s.Limit.Location != nil && s.Limit.Location != r.limit.Location) {
		return nil, errors.New("a setting's window of the calendar must be the zone's: leave it out, or write a duration")
	}
	_, lends := r.algorithm.(algorithms.Lender)
	if lease := s.Limit.Lease; lends && lease != 0 && lease != cmp.Or(r.limit.Lease, algorithms.DefaultLease) {
		return nil, fmt.Errorf("a setting's lease must be the zone's, %v: leave it out, got %v", cmp.Or(r.limit.Lease, algorithms.DefaultLease), lease)
	}
	var err error
	if o.params, err = r.algorithm.Prepare(l); err != nil {
		return nil, err
	}
	// A window of the calendar depends on the date; and a lease is renewed as the rule says.
	o.events = l.Calendar != 0 || lends
	family := ""
	if !o.events {
		family = Escape(r.algorithm.Family(l))
		o.states = statesOf(r.zone, o.algorithm, family)
	}
	o.told = o.head() + family
	return o, nil
}

// head is what scripts need to know of the limit: whether the window is its own, and the
// parameters.
func (o *PreparedOverride) head() string {
	b := make([]byte, 1, ownHead)
	if !o.events {
		b[0] = 1
	}
	for _, p := range o.params {
		b = binary.BigEndian.AppendUint64(b, uint64(p))
	}
	return string(b)
}

// over fills in what the limit of one key does not say.
func over(l, base algorithms.Limit) algorithms.Limit {
	if l.Window == 0 && l.Calendar == 0 {
		l.Window, l.Calendar = base.Window, base.Calendar
	}
	l.Refill, l.Mode, l.Align = cmp.Or(l.Refill, base.Refill), cmp.Or(l.Mode, base.Mode), cmp.Or(l.Align, base.Align)
	l.Lease, l.MaxWait = cmp.Or(l.Lease, base.Lease), cmp.Or(l.MaxWait, base.MaxWait)
	if l.Calendar != 0 {
		l.Location = base.Location
	}
	return l
}

// Limits tells whether this is a limit in place of that of the rule. The setting may be nil.
func (o *PreparedOverride) Limits(rule *Rule) bool {
	return o != nil && o.Kind == KindLimit && o.algorithm == rule.algorithm.Name()
}

// Params are what the algorithm computes with for a key that has this limit, if for others
// it is p.
func (o *PreparedOverride) Params(p algorithms.Params) algorithms.Params {
	if !o.events {
		return o.params
	}
	p[0] = o.params[0]
	return p
}

// Prepared is what the algorithm of a rule computes with for a key that has this limit, if
// for others it is p.
func (o *PreparedOverride) Prepared(p *Prepared) *Prepared {
	return prepare(o.algorithm, o.Params(p.Params), p.until)
}

// States are the states that the limit counts in, if those of the rule are of.
func (o *PreparedOverride) States(of States) States {
	if o.events {
		return of
	}
	return o.states
}

// Encoded is what [algorithms.Decision].Own says of the limit.
func (o *PreparedOverride) Encoded() string { return o.told }
