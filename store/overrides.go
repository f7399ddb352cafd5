package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// Overrider is a [Store] that keeps overrides beside the states: of single keys, and of networks. It can list them, and
// what is banned.
//
// An override holds for the whole fleet, for every later check with [KeyRules].Overrides, and for no other checks. It
// belongs to the zone and the [Selector]. The methods use the zone of the rule and, for an override with a limit, its
// algorithm. Its numbers do not matter. Other processes may still spend what they hold of the key: see [Rule.Hold].
//
// That of a network holds for all keys of the zone that are addresses in it, or networks within it. Each of these keys
// counts for itself. Of several networks the smallest one decides, and the override of a key itself goes before all of
// them.
//
// All methods but Networks ask the store's backend at once, and fail as Take does. What a network has is known without
// asking. Lists come in pages. The cursor of the first page is "", and next is that of the following one, or "" after the
// last. Another cursor fails with [ErrCursor]. A page may be empty, and may have more than n keys. A key that changes
// meanwhile may be missing or come twice.
type Overrider interface {
	// SetRule sets an override, instead of any that there is. One of [KindNone] only removes what there is.
	SetRule(ctx context.Context, rule *Rule, of Selector, to Override) error

	// GetRule returns the override of exactly a key or a network, with For as the time that is left. The kind is KindNone
	// if there is none.
	GetRule(ctx context.Context, rule *Rule, of Selector) (Override, error)

	// Unban ends a ban, whether it is an override or follows refusals, and forgets a key's refusals and earlier bans. An
	// override of another kind stays. In zones without overrides, a cache of refusals may keep the ban until its entry
	// expires.
	Unban(ctx context.Context, rule *Rule, of Selector) error

	// Overrides lists the keys that have an override, with what is left of it.
	Overrides(ctx context.Context, rule *Rule, cursor string, n int) (keys []Listed, next string, err error)

	// Bans lists the keys that are banned because they were refused too often. Their overrides
	// are of [KindBanned], with the rest of the ban.
	Bans(ctx context.Context, rule *Rule, ban *Ban, cursor string, n int) (keys []Listed, next string, err error)

	// Refusals returns which refusals of a key count towards the next ban of its zone.
	Refusals(ctx context.Context, rule *Rule, ban *Ban, key string) (Refusals, error)

	// Networks returns the networks of a zone. This process knows them: nothing is asked. All calls for a zone return the
	// same.
	Networks(rule *Rule) *Networks
}

// ErrCursor is the error of a list whose cursor is not one of the store.
var ErrCursor = errors.New("the cursor is not one of this store")

// Listed is a key of a list.
type Listed struct {
	Key      string
	Override Override

	// Unknown says that the store only has a hash of the key, which is shown instead.
	Unknown bool
}

// Refusals are the refusals of a key that count towards its next ban.
type Refusals struct {
	Count int64
	Left  time.Duration // for how much longer they count
	Next  time.Duration // how long the next ban is
}

// Kind says what an override does.
type Kind uint8

const (
	KindNone   Kind = iota
	KindExempt      // the key's requests pass and are not counted
	KindBanned      // the key's requests are refused and not counted
	KindLimit       // another limit holds for the key
)

var kinds = [...]string{KindNone: "none", KindExempt: "exempt", KindBanned: "banned", KindLimit: "limit"}

// String returns the kind's name.
func (k Kind) String() string { return kinds[k] }

// Override holds for one key instead of the zone's limit.
type Override struct {
	Kind Kind `json:"-"`

	// Limit is the limit of KindLimit, for the algorithm of the rule. Options that it leaves
	// out are those of the rule's limit, except for a burst, which is then its events. A
	// calendar window and a lease can only be the rule's. In zones with plans of several
	// algorithms, the limit holds for requests whose plan has this algorithm. It counts in
	// the states of its family, as every limit does.
	Limit algorithms.Limit `json:"limit,omitzero"`

	// Algorithm is that of the limit of KindLimit. A store fills it in: it is the algorithm of the rule for which it was set.
	Algorithm string `json:"-"`

	// Note is for people, such as the name of the plan that the limit comes from. It has at
	// most MaxNote bytes.
	Note string `json:"note,omitempty"`

	// Since is when it was set, in whole seconds, and By says who has done that. They are for people. The zero values
	// say that this is not known. By has at most MaxNote bytes.
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"`

	// For is how long the override holds: from MinOverride to algorithms.MaxWindow, in whole
	// microseconds. 0 means until it is cleared.
	For time.Duration `json:"-"`
}

const (
	// MaxNote is the longest note, in bytes.
	MaxNote = 1024

	// MinOverride is the shortest time for which an override can hold.
	MinOverride = time.Second
)

// PreparedOverride is an override prepared for a rule.
type PreparedOverride struct {
	Override
	states  States // those of the rule if the ID is empty: then only the events differ
	encoded string // the limit in the form of [algorithms.Decision].Override, see [Rule.ChargedBy]
}

// PrepareOverride checks an override and prepares it. Its error names the field, its value
// and what would be right.
func (r *Rule) PrepareOverride(override Override) (*PreparedOverride, error) {
	override.For, override.Since = override.For.Truncate(time.Microsecond), override.Since.UTC().Truncate(time.Second)
	kind, length, limit := override.Kind, override.For, override.Limit
	switch {
	case kind == KindNone || int(kind) >= len(kinds):
		return nil, fmt.Errorf("override must be %s, %s or %s, got %d", KindExempt, KindBanned, KindLimit, kind)
	case kind != KindLimit && limit != algorithms.Limit{}:
		return nil, fmt.Errorf("override %s cannot have a limit: leave it out", kind)
	case length != 0 && (length < MinOverride || length > algorithms.MaxWindow):
		return nil, fmt.Errorf("override must last from %s to %s, or 0 for until it is cleared, got %s",
			duration.Format(MinOverride), duration.Format(algorithms.MaxWindow), duration.Format(length))
	case max(len(override.Note), len(override.By)) > MaxNote:
		return nil, fmt.Errorf("note and by of an override must be at most %d bytes, got %d and %d", MaxNote, len(override.Note), len(override.By))
	}
	o := &PreparedOverride{Override: override}
	if o.Algorithm = ""; kind != KindLimit {
		return o, nil
	}
	o.Algorithm = r.algorithm.Name()
	full := limit.Over(r.limit)
	otherPlace := limit.Location != nil && limit.Location != r.limit.Location
	if full.Calendar != 0 && (full.Calendar != r.limit.Calendar || otherPlace) {
		return nil, errors.New("calendar window of an override must be the zone's: leave it out, or write a duration")
	}
	_, leases := r.algorithm.(algorithms.Leaser)
	if want := cmp.Or(r.limit.Lease, algorithms.DefaultLease); leases && limit.Lease != 0 && limit.Lease != want {
		return nil, fmt.Errorf("lease of an override must be the zone's, %s, got %s: leave it out", duration.Format(want), duration.Format(limit.Lease))
	}
	params, err := r.algorithm.Prepare(full)
	if err != nil {
		return nil, err
	}
	head, family := make([]byte, 1, limitHead), ""
	// The parameters of a calendar window depend on the date, and leases are renewed by the
	// rule's limit. So all but the events must be the rule's.
	if full.Calendar == 0 && !leases {
		head[0], family = 1, Escape(r.algorithm.Family(full))
		o.states = statesOf(r.zone, o.Algorithm, family)
	}
	for _, p := range params {
		head = binary.BigEndian.AppendUint64(head, uint64(p))
	}
	o.encoded = string(head) + family
	return o, nil
}

// ReplacesLimit reports whether the override has a limit that replaces the rule's. It is false
// for nil.
func (o *PreparedOverride) ReplacesLimit(rule *Rule) bool {
	return o != nil && o.Kind == KindLimit && o.Algorithm == rule.algorithm.Name()
}

// Params returns the parameters of the override's limit, where p are those of the rule.
func (o *PreparedOverride) Params(p algorithms.Params) algorithms.Params {
	p, _, _ = OverrideParams(o.encoded, p)
	return p
}

// States returns the states in which the override's limit counts, where rule are those of the
// rule.
func (o *PreparedOverride) States(rule States) States {
	if o.states.ID == "" {
		return rule
	}
	return o.states
}

// A store that keeps bytes writes an override as these parts:
//
//   - a byte for the kind, and the end in microseconds since 1970, 0 for none;
//   - for KindLimit: the algorithm, a zero byte, a byte that is 1 if all parameters are the
//     override's and 0 if only the events are, the six parameters, the family, a zero byte;
//   - the rest as JSON, which no script reads.

// overrideHead is the length of kind and end.
const overrideHead = 1 + 8

// Wire returns what a store writes for the override before its end, and after it.
func (o *PreparedOverride) Wire() (kind byte, tail string) {
	rest := o.Override
	if rest.Limit.Location = nil; o.Kind == KindLimit { // the place is always the zone's
		tail = o.Algorithm + "\x00" + o.encoded + "\x00"
	}
	text, _ := json.Marshal(rest) // there are only numbers and text
	return byte(o.Kind), tail + string(text)
}

// wireUntil returns the end of an override, which has a head.
func wireUntil(value string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(value[1:overrideHead])))
}

var errOverride = errors.New("the stored override is not one of this version: set or clear it")

// ParseOverride reads what a store has written, at a time in microseconds since 1970. If the
// value is empty or the override has ended, the result is of KindNone.
func ParseOverride(value string, now int64) (override Override, err error) {
	if value == "" {
		return override, nil
	}
	if len(value) < overrideHead || value[0] == byte(KindNone) || int(value[0]) >= len(kinds) {
		return override, errOverride
	}
	head, tail := value[:overrideHead], value[overrideHead:]
	kind, until, name := Kind(head[0]), wireUntil(value), ""
	if until != 0 && until <= now {
		return override, nil
	}
	if kind == KindLimit {
		if name, tail, _ = strings.Cut(tail, "\x00"); len(tail) < limitHead {
			return override, errOverride
		}
		_, tail, _ = strings.Cut(tail[limitHead:], "\x00")
	}
	if err := json.Unmarshal([]byte(tail), &override); err != nil {
		return Override{}, errOverride
	}
	override.Kind, override.Algorithm = kind, name
	if until != 0 {
		override.For = time.Duration(until-now) * time.Microsecond
	}
	return override, nil
}
