package world

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// History is what happened in a world.
type History struct {
	Plan    *Plan
	Answers []Answer // in the order of their events, when the world is over

	Verdicts []Verdict                     // of whole instances
	Length   time.Duration                 // of the world
	Left     map[place]algorithms.Decision // of each key in the end
	Losses   []Loss
	Deeds    []Deed                // of operators
	Networks []Known               // in the end
	Killed   map[int]time.Duration // when instances were
	Commands []Command             // in the order in which Redis has carried them out
	Wrong    []string              // what must not have happened

	mu     sync.Mutex
	began  time.Duration
	clocks []reading // of Redis
	lines  []line

	promise string // that is checked
}

// Command is a command that Redis has carried out.
type Command struct {
	At       time.Duration
	Clock    int64  // the time on the clock of Redis, in microseconds since 1970
	Host     string // its address
	Instance int
	State    State
	Args     []string
	Reply    []byte
}

// Expired is the name of a command that nobody has sent: a key has expired.
const Expired = "expired"

// State is in what state Redis carries out a command.
type State struct{ Full, Readonly, Alone, Forbidden bool }

type line struct {
	at   time.Duration
	text string
}

// Answer is what the store of an instance has answered about a key of a zone.
type Answer struct {
	Event        int
	Instance     int
	Zone, Key    int
	Cost         int64
	Lease        string // the name of the lease, if there is one
	Began, Ended time.Duration
	Failure      string // its kind; empty: there is a decision
	Err          string
	Decision     algorithms.Decision
	Independent  bool          // it is a dry run
	Charged      bool          // the decision was to charge the cost
	Adjusted     time.Duration // when the charge was adjusted last; 0: it was not
	Delta        int64         // by how much
	Late         int64         // what was charged more; some of it may have come back
}

// name tells answers apart.
func (a *Answer) name() string { return fmt.Sprint(a.Event, " ", a.Began) }

// place is a key of a zone.
type place struct{ zone, key int }

// Loss says that Redis may have lost what it had charged between two times: what decides after Since may not know of
// it.
type Loss struct{ From, To, Since time.Duration }

// reading is the offset of a clock from a time on.
type reading struct {
	from, offset time.Duration
}

// tell notes something in a part of a history.
func tell[T any](h *History, part *[]T, what T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*part = append(*part, what)
}

func (h *History) note(at time.Duration, text string) { tell(h, &h.lines, line{at, text}) }

// wrong notes what must not have happened.
func (h *History) wrong(format string, args ...any) {
	tell(h, &h.Wrong, h.promise+fmt.Sprintf(format, args...))
}

// wrong notes what must not have happened to the key.
func (k *key) wrong(format string, args ...any) {
	k.History.wrong("zone %d, key %d: %s", k.zone, k.key, fmt.Sprintf(format, args...))
}

// adjusted notes that a charge was adjusted.
func (h *History) adjusted(when time.Duration, adjustment *store.Adjustment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.Plan.placeOf(&adjustment.Check)
	h.inOrder()
	a := h.chargeOf(adjustment, at)
	if !ok || a == nil {
		return // nobody knows if it was charged
	}
	a.Adjusted, a.Delta, a.Late = when, a.Delta+adjustment.Delta, a.Late+max(0, adjustment.Delta)
	h.lines = append(h.lines, line{when, fmt.Sprintf("client %d: adjusts zone %d, key %d by %d", a.Event, a.Zone, a.Key, adjustment.Delta)})
}

// chargeOf returns the answer whose charge is adjusted. A request in a queue that has taken the turn of one that left pays
// late costs in that turn, which was given back. Of charges that look the same, one that was not adjusted before is.
func (h *History) chargeOf(adjustment *store.Adjustment, at place) *Answer {
	z := &h.Plan.Zones[at.zone]
	var again, left *Answer
	for i := range h.Answers {
		a := &h.Answers[i]
		switch {
		case !a.Charged || a.Zone != at.zone || a.Key != at.key:
		case z.same(a, adjustment) && a.Adjusted == 0:
			return a
		case z.same(a, adjustment):
			again = cmp.Or(again, a)
		case z.queues() && adjustment.Delta > 0 && a.Decision.Turn() == adjustment.Turn:
			left = a
		}
	}
	return cmp.Or(again, left)
}

// same reports whether an adjustment is of an answer's charge. Several charges may look the same, of which one is adjusted.
func (z *Zone) same(a *Answer, adjustment *store.Adjustment) bool {
	switch {
	case a.Lease != "" || adjustment.LeaseID != "":
		return a.Lease == adjustment.LeaseID
	case a.Adjusted != 0 || a.Cost != adjustment.Cost:
		return false
	case z.queues(): // the last turn is given back, no matter which request had it
		return a.Decision.Turn() == adjustment.Turn
	}
	return a.Decision.Booked() == adjustment.At
}

// inOrder sorts the answers by clients, so that their order is the same in each run.
func (h *History) inOrder() {
	slices.SortFunc(h.Answers, func(a, b Answer) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Began, b.Began), cmp.Compare(a.Zone, b.Zone))
	})
}

// empty is a field that is zero, in Go.
var empty = regexp.MustCompile(`\w+:(0|0x0|""|false|\(\*time\.Location\)\(nil\)|[\w.]+{})(, |(}))`)

// Source is the plan in Go, with a line for each zone and event.
func (p *Plan) Source() string {
	text := strings.ReplaceAll(fmt.Sprintf("%#v", *p), "world.", "")
	for range 2 { // structs are empty then too
		text = strings.ReplaceAll(empty.ReplaceAllString(text, "$3"), ", }", "}")
	}
	return strings.NewReplacer("}, Event{", "},\n\tEvent{", "}, Zone{", "},\n\tZone{").Replace(text)
}

// String returns all of it, in the order of time. What happened at the same instant is in the order of its text.
func (h *History) String() string {
	lines := slices.Clone(h.lines)
	for _, a := range h.Answers {
		lines = append(lines, line{a.Ended, fmt.Sprintf("answer %+v", a)})
	}
	for _, d := range h.Deeds {
		lines = append(lines, line{d.Ended, fmt.Sprintf("operator %+v", d)})
	}
	for _, v := range h.Verdicts {
		lines = append(lines, line{v.Ended, fmt.Sprintf("client %+v", v)})
	}
	for _, c := range h.Commands {
		// A store sends leases in the order of a map, which is another one each time and means nothing.
		lines = append(lines, line{c.At, fmt.Sprintf("redis %s: %s of %d, %x: %x", c.Host, c.Args[0], c.Instance, bag([]byte(strings.Join(c.Args, " "))), bag(c.Reply))})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%12v %s\n", l.at, l.text)
	}
	return b.String()
}

// key is what happened to a key of a zone.
type key struct {
	*History
	Zone
	place
	deeds    []*Deed
	answers  []*Answer
	admitted []*Answer // with a cost
	refused  []*Answer
	unknown  []*Answer // which may have been charged
	late     int64     // costs that came later
	varies   bool      // the limit is not the same for all requests
}

func (h *History) keyOf(zone, number int) *key {
	k := &key{History: h, Zone: h.Plan.Zones[zone], place: place{zone, number}, varies: len(h.Plan.limits(zone)) > 1}
	for i := range h.Deeds {
		if d := &h.Deeds[i]; d.Zone == zone && d.Key == number {
			k.deeds = append(k.deeds, d)
		}
	}
	for i := range h.Answers {
		a := &h.Answers[i]
		if a.Zone != zone || a.Key != number {
			continue
		}
		k.answers = append(k.answers, a)
		k.late += a.Late
		switch {
		case a.Cost == 0 && a.Delta == 0:
		case a.Failure != "", a.Independent && h.Plan.has(unable): // a full Redis decides about it, and does not charge it
			k.unknown = append(k.unknown, a)
		case a.Charged:
			k.admitted = append(k.admitted, a)
		default:
			if !a.Decision.Allowed {
				k.refused = append(k.refused, a)
			}
			if a.Ended-a.Began >= timeout { // there was no answer, and the refusal of another is told: it may be charged
				k.unknown = append(k.unknown, a)
			}
		}
	}
	slices.SortStableFunc(k.admitted, func(a, b *Answer) int {
		// Of several at the same moment, the one came first that says that less is used.
		return cmp.Or(cmp.Compare(k.when(a), k.when(b)), cmp.Compare(a.Decision.Turn(), b.Decision.Turn()),
			cmp.Compare(a.Decision.Quota-a.Decision.Remaining, b.Decision.Quota-b.Decision.Remaining))
	})
	return k
}

// when is when Redis has decided, by the time of the world: what its clock said then, and what that was ahead.
func (h *History) when(a *Answer) time.Duration {
	told := time.Duration(a.Decision.At-epoch) * time.Microsecond
	for i := len(h.clocks) - 1; i >= 0; i-- {
		if at := told - h.clocks[i].offset; at >= max(h.clocks[i].from, a.Began)-time.Microsecond && at <= a.Ended {
			return at
		}
	}
	return told
}

// hasLost reports whether Redis may have lost anything that was charged, or counts it otherwise because its clock has
// stepped.
func (h *History) hasLost() bool { return len(h.Losses) > 0 }

// lostFor reports whether a decision may not know of a charge: Redis has lost it, or an operator has reset the key.
func (k *key) lostFor(a, charged *Answer) bool {
	was, by := k.when(charged), k.when(a)
	return slices.ContainsFunc(k.Losses, func(l Loss) bool {
		return was >= l.From-time.Microsecond && was <= l.To && by > l.Since-time.Microsecond
	}) || slices.ContainsFunc(k.deeds, func(d *Deed) bool { return d.Kind == Reset && was <= d.Ended && by >= d.Began })
}
