package world

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
)

// aboveLimit checks that what a key was admitted is within its limit. The model is charged what was admitted, and
// nothing else: what a call without an answer has charged can only leave less. What is given back is given back when
// the client has said so.
func (k *key) aboveLimit() {
	if k.slots() || k.Lend > 0 {
		return
	}
	back := slices.ContainsFunc(k.Plan.Events, func(e Event) bool { return e.Kind == Step && e.After < 0 })
	if back || k.anchored() && (k.late > 0 || k.Plan.doubtful() || k.Plan.has(unable) || k.varies) {
		return // a window begins at another time, and depends on when something is given back
	}
	if (k.hasLost() || k.touched(Reset)) && slices.ContainsFunc(k.admitted, func(a *Answer) bool { return a.Delta < 0 }) {
		return // what is given back of a charge that is lost comes back of others, at a time that nobody knows
	}
	m := model.New(k.Algorithm)
	var charged []*Answer // as the model knows it
	for i, a := range k.admitted {
		left := slices.DeleteFunc(slices.Clone(k.admitted[:i]), func(b *Answer) bool { return k.lostFor(a, b) })
		if !slices.Equal(left, charged) {
			m, charged = k.model(left), left
		}
		// A window may have begun with a charge that is lost otherwise.
		if !k.charge(m, charged, a) && !(k.anchored() && k.charge(k.model(k.admitted[:i]), k.admitted[:i], a)) {
			k.wrong("client %d was admitted above the limit", a.Event)
		}
		charged = append(charged, a)
	}
}

// limitOf returns the limit that was in force for a request.
func (k *key) limitOf(a *Answer) algorithms.Limit {
	limit := k.Limit
	if a.Decision.Quota > 0 {
		limit.Events = a.Decision.Quota
	}
	return limit
}

// model returns a model that is charged with answers.
func (k *key) model(all []*Answer) *model.Key {
	m := model.New(k.Algorithm)
	for i, a := range all {
		k.charge(m, all[:i], a)
	}
	return m
}

// charge has the model give back what was given back since the last of what was charged, and charges more. It reports
// whether that fits. What is given back of a charge that was lost is given back of others. In a queue all is given back again,
// which changes nothing if it was: a turn comes back only when it is the last, and Redis may learn of it after those behind it.
func (k *key) charge(m *model.Key, charged []*Answer, a *Answer) bool {
	since := time.Duration(0)
	if len(charged) > 0 && !k.queues() {
		since = k.when(charged[len(charged)-1])
	}
	now := k.when(a)
	back := slices.DeleteFunc(slices.Clone(k.admitted), func(b *Answer) bool { return b.Delta >= 0 || b.Adjusted <= since || b.Adjusted > now })
	slices.SortFunc(back, func(a, b *Answer) int {
		if k.queues() { // of which only the last can be given back, and they are sent in any order
			return cmp.Compare(b.Decision.Turn(), a.Decision.Turn())
		}
		return cmp.Compare(a.Adjusted, b.Adjusted)
	})
	for _, b := range back {
		m.Adjust(k.limitOf(b), a.Decision.At-(now-b.Adjusted).Microseconds(), b.Decision.Booked(), b.Delta, b.name())
	}
	return m.Admit(k.limitOf(a), a.Decision.At, a.Cost, a.name())
}

// aboveLent checks that all instances together have admitted no more in any time than one limiter would: of limits that
// are easy to add up and, in all, of those of which next to nothing comes back while a world lasts. When an instance
// has decided is only known to be between when a client came and when it had its answer. Late costs are another matter:
// other instances do not know of them.
func (k *key) aboveLent() {
	if k.Lend == 0 || k.late > 0 || k.hasLost() || k.touched(Reset) {
		return
	}
	most := k.mostBetween
	if k.Limit.Window >= time.Hour {
		all := k.mostOf()
		all += k.comesBack(all)
		most = func(_, _ time.Duration) int64 { return all }
	} else if k.anchored() || k.touched(Override, Clear) || k.varies || slices.ContainsFunc(k.admitted, (*Answer).changed) {
		return
	}
	byEnd := slices.SortedFunc(slices.Values(k.admitted), func(a, b *Answer) int { return cmp.Compare(a.Ended, b.Ended) })
	for _, first := range k.admitted {
		admitted := int64(0)
		for _, last := range byEnd {
			if last.Began < first.Began {
				continue
			}
			if admitted += last.Cost + last.Delta; admitted > most(first.Began, last.Ended) {
				k.wrong("%d were admitted together from client %d to client %d", admitted, first.Event, last.Event)
				return
			}
		}
	}
}

// changed reports whether an answer was not to charge its cost to the limit of the zone, and no more.
func (a *Answer) changed() bool { return a.Adjusted != 0 || a.Decision.Override != "" }

// mostBetween returns how much of a limit may be used between two times.
func (k *key) mostBetween(from, to time.Duration) int64 {
	first, last, window := epoch+from.Microseconds(), epoch+to.Microseconds(), k.Limit.Window.Microseconds()
	switch {
	case k.isBucket():
		return k.Limit.Events + (last-first+2)*k.Limit.Events/window + 1
	case k.Algorithm == "sliding_window_log":
		return (1 + (last-first+1)/window) * k.Limit.Events
	}
	return (1 + last/window - first/window) * k.Limit.Events // windows begin at the same times for all keys
}

// mostOf is how much of a limit that never comes back a key can use under all limits that it had: a window counts
// under each of them what was charged under another. A bucket that comes to another rate does not know that.
func (k *key) mostOf() int64 {
	limits := k.Plan.limits(k.zone)
	most := slices.Max(limits)
	if k.isBucket() {
		most = total(limits)
	}
	for _, d := range k.deeds {
		switch {
		case d.Kind != Override && d.Kind != Clear:
		case !k.isBucket():
			if d.Sort == limited {
				most = max(most, d.Cost)
			}
		case d.Kind == Clear || d.Sort != limited:
			most += k.Limit.Events
		default:
			most += d.Cost + k.Limit.Events // which is back when the time of the other limit is over
		}
	}
	return most
}

func total(all []int64) (n int64) {
	for _, one := range all {
		n += one
	}
	return n
}

func (k *key) isBucket() bool { return k.Algorithm == "token_bucket" || k.Algorithm == "leaky_bucket" }

// comesBack returns how much of a limit comes back while a world lasts, at most, if nothing does at the end of a window.
func (k *key) comesBack(limit int64) int64 {
	if !k.isBucket() {
		return 0
	}
	return 1 + k.Length.Microseconds()*limit/k.Limit.Window.Microseconds()
}
