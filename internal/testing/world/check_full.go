package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

var _ = promiseOfKeys("a full Redis decides what needs no memory", (*key).decidedWhenFull)

// decidedWhenFull checks that no cost fails for lack of memory if the state of its key is there, and a new one takes as
// much. Under another limit a state may be longer.
func (k *key) decidedWhenFull() (violations []string) {
	if _, counts := k.algorithm().(algorithms.Counter); !counts || k.touched(Override, Clear, Reset) || k.Plan.varies(k.zone) || k.hasLost() || len(k.clocks) > 1 {
		return nil
	}
	for _, a := range k.unknown {
		there := slices.ContainsFunc(k.admitted, func(b *Answer) bool {
			return b.Ended < a.Began && b.Cost > 0 && b.Delta >= 0 && k.when(b)+k.Limit.Window/time.Duration(k.Limit.Events) > a.Ended
		})
		if a.Failure == store.FailureOOM && there && k.asksAlone(a) {
			violations = append(violations, fmt.Sprintf("client %d fails for lack of memory, though zone %d, key %d is there", a.Event, k.zone, k.key))
		}
	}
	return violations
}

// asksAlone reports whether nothing else was asked with an answer: then it fails for no other key's sake.
func (h *History) asksAlone(a *Answer) bool {
	return !slices.ContainsFunc(h.Answers, func(b Answer) bool {
		return b.Event == a.Event && b.Began == a.Began && (b.Zone != a.Zone || b.Key != a.Key)
	})
}

func (z *Zone) algorithm() algorithms.Algorithm {
	a, _ := algorithms.Get(z.Algorithm)
	return a
}
