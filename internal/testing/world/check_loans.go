package world

import (
	"fmt"
	"time"
)

var _ = promiseOfKeys("with lend, never above the limit", (*key).aboveLent)

// aboveLent checks that all instances together have admitted no more than the limit, where next to nothing comes back
// while a world lasts. Late costs are another matter: other instances do not know of them.
func (k *key) aboveLent() []string {
	if k.Lend == 0 || k.Limit.Window < time.Hour || k.late > 0 || k.hasLost() || len(k.clocks) > 1 || k.touched(Reset) || k.Plan.hasKind(Suspend) {
		return nil
	}
	admitted, most := int64(0), k.Limit.Events+k.comesBack()
	for _, a := range k.admitted {
		admitted += a.Cost
		if a.Adjusted != 0 {
			admitted += a.Delta
		}
	}
	if admitted > most {
		return []string{fmt.Sprintf("%d of zone %d, key %d were admitted together, of %d", admitted, k.zone, k.key, most)}
	}
	return nil
}

// comesBack is how much of an hour's limit comes back while a world lasts, at most.
func (k *key) comesBack() int64 {
	if k.Algorithm == "token_bucket" || k.Algorithm == "leaky_bucket" {
		return 1 + k.Length.Microseconds()*k.Limit.Events/k.Limit.Window.Microseconds()
	}
	return 0
}
