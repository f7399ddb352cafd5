package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("with lend, never above the limit", (*key).aboveLent)

// aboveLent checks that all instances together have admitted no more than the limit, where next to nothing comes back
// while a world lasts. Late costs are another matter: other instances do not know of them.
func (k *key) aboveLent() []string {
	if k.Lend == 0 || k.Limit.Window < time.Hour || k.late > 0 || k.hasLost() || len(k.clocks) > 1 || k.touched(Reset) {
		return nil
	}
	admitted, most := int64(0), k.mostOf()
	for _, a := range k.admitted {
		admitted += a.Cost
		if a.Adjusted != 0 {
			admitted += a.Delta
		}
	}
	if most += k.comesBack(most); admitted > most {
		return []string{fmt.Sprintf("%d of zone %d, key %d were admitted together, of %d", admitted, k.zone, k.key, most)}
	}
	return nil
}

var _ = promiseOfKeys("with lend, never above the limit", (*key).aboveLentInTime)

// aboveLentInTime checks that all instances together have admitted no more in any time than one limiter would, of limits that are
// easy to add up. When an instance has decided is only known to be between when a client came and when it had its answer.
func (k *key) aboveLentInTime() []string {
	if k.Lend == 0 || k.anchored() || k.hasLost() || len(k.clocks) > 1 || k.touched(Reset, Override, Clear) || k.Plan.varies(k.zone) {
		return nil
	}
	if slices.ContainsFunc(k.admitted, func(a *Answer) bool { return a.Adjusted != 0 || a.Decision.Override != "" }) {
		return nil
	}
	byEnd := slices.SortedFunc(slices.Values(k.admitted), func(a, b *Answer) int { return cmp.Compare(a.Ended, b.Ended) })
	for _, first := range k.admitted {
		admitted := int64(0)
		for _, last := range byEnd {
			if last.Began < first.Began {
				continue
			}
			if admitted += last.Cost; admitted > k.mostBetween(first.Began, last.Ended) {
				return []string{fmt.Sprintf("%d of zone %d, key %d were admitted together from client %d to client %d", admitted, k.zone, k.key, first.Event, last.Event)}
			}
		}
	}
	return nil
}

// mostBetween returns how much of a limit may be used between two times.
func (k *key) mostBetween(from, to time.Duration) int64 {
	first, last, window := epoch+from.Microseconds(), epoch+to.Microseconds(), k.Limit.Window.Microseconds()
	switch {
	case k.isBucket():
		return cmp.Or(k.Limit.Burst, k.Limit.Events) + (last-first+2)*k.Limit.Events/window + 1
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
	for _, d := range k.Deeds {
		e := k.Plan.Events[d.Event]
		switch {
		case d.Zone != k.zone || d.Key != k.key || d.Kind != Override && d.Kind != Clear:
		case !k.isBucket():
			if d.Sort == limited {
				most = max(most, e.Cost)
			}
		case d.Kind == Clear || d.Sort != limited:
			most += k.Limit.Events
		default:
			most += e.Cost + k.Limit.Events // which is back when the time of the other limit is over
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
