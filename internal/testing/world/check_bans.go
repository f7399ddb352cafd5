package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("a key that is refused often enough is banned everywhere", (*key).bans)

// bans checks that enough refusals make a ban, and that all keep to it: at once, or with lend when nothing
// is held any more.
func (k *key) bans() (violations []string) {
	if k.BanAfter == 0 || k.loses() || k.touched(Override, Clear, Unban, Reset) {
		return nil
	}
	counted := slices.DeleteFunc(slices.Clone(k.refused), func(a *Answer) bool { return a.Decision.Banned && !a.Decision.BanBegins || k.fromMemory(a) })
	slices.SortFunc(counted, func(a, b *Answer) int { return cmp.Compare(k.when(a), k.when(b)) })
	refused := int64(0)
	for _, a := range counted {
		if k.bannedUnheard(a) {
			break
		}
		if refused++; !a.Decision.BanBegins {
			if refused >= k.BanAfter && k.when(a)-k.when(counted[0]) < banWithin {
				violations = append(violations, fmt.Sprintf("client %d is the refusal %d of zone %d, key %d, and no ban begins", a.Event, refused, k.zone, k.key))
			}
			continue
		}
		for i := range k.Answers {
			b := &k.Answers[i]
			if b.Zone == k.zone && b.Key == k.key && b.Failure == "" && b.Began > a.Ended+k.Lend && b.Ended < k.when(a)+k.BanFor && !k.undecided(b) && !k.fromMemory(b) && !b.Decision.Banned {
				violations = append(violations, fmt.Sprintf("client %d is not banned in zone %d, key %d, though client %d was", b.Event, k.zone, k.key, a.Event))
			}
		}
		break // later ones begin with what is left of the time in which refusals are counted
	}
	return violations
}

// bannedUnheard reports whether a ban may have begun before an answer with a refusal of which nobody has heard: others were banned
// since, or it may have ended meanwhile. What is counted begins again with it.
func (k *key) bannedUnheard(a *Answer) bool {
	unheard := func(c *Answer) bool { return c.Failure != "" || k.fromMemory(c) }
	if slices.ContainsFunc(k.unknown, func(c *Answer) bool { return unheard(c) && c.Began+k.BanFor < k.when(a) }) {
		return true
	}
	return slices.ContainsFunc(k.refused, func(b *Answer) bool {
		before := func(c *Answer) bool { return c.Began < k.when(b) && unheard(c) }
		return b.Decision.Banned && !b.Decision.BanBegins && b.Ended <= a.Ended && slices.ContainsFunc(k.unknown, before)
	})
}

// loses reports whether an override or a ban may be lost.
func (k *key) loses() bool {
	return len(k.clocks) > 1 || k.hasLost() || k.Plan.has(servers, machines, unable)
}

// banWithin is in what time refusals are counted.
const banWithin = 10 * time.Second
