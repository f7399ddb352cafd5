package world

import (
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("with lend, never above the limit", (*key).aboveLent)

// aboveLent checks that all instances together have admitted no more than the limit, where next to nothing comes back
// while a world lasts. Late costs are another matter: other instances do not know of them.
func (k *key) aboveLent() []string {
	if k.Lend == 0 || k.Limit.Window < time.Hour || k.late > 0 || k.hasLost() || len(k.clocks) > 1 || k.touched(Reset) || k.Plan.hasKind(Suspend) {
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
