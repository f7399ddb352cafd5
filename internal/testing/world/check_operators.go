package world

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// withoutOperators checks that each ban, exemption and other limit that decided has a cause.
func (k *key) withoutOperators() {
	for _, a := range k.answers {
		if a.Failure != "" {
			continue
		}
		was := ""
		switch d := &a.Decision; {
		case d.Exempt && !k.made(exempt, a) && !k.undecided(a):
			was = "exempt"
		case d.Banned && !k.made(banned, a) && !k.earned(a):
			was = "banned"
		case d.Override != "" && !k.made(limited, a):
			was = "under another limit"
		}
		if was != "" {
			k.wrong("client %d was %s without a cause", a.Event, was)
		}
	}
}

// holds checks that each answer keeps to an override that was set before, and is not over: at once, or with lend when
// nothing is held any more that was charged ahead before. What others do to the key later, and what loses an override, are
// other matters.
func (k *key) holds() {
	if k.loses() {
		return
	}
	for _, a := range k.answers {
		if a.Failure != "" || k.fromMemory(a) || k.undecided(a) {
			continue
		}
		was := a.Decision
		kept := map[store.Kind]bool{
			store.KindNone: true, store.KindExempt: was.Exempt, store.KindBanned: was.Banned && !was.Allowed,
			store.KindLimit: was.Override != "",
		}
		by, known := k.ruling(k.zone, k.key, a.Began, a.Ended, func(d *Deed) bool { return a.Began > d.Ended+k.Lend })
		if known && !kept[by.kind] {
			k.wrong("client %d was not %v: %+v", a.Event, by, was)
		}
	}
}

// fromMemory reports whether a refusal is perhaps one of before, because no answer has come.
func (k *key) fromMemory(a *Answer) bool { return a.Ended-a.Began >= timeout && !a.Decision.Allowed }

// undecided reports whether another zone of the request was refused from memory, so that this one was not asked.
func (k *key) undecided(a *Answer) bool {
	return slices.ContainsFunc(k.Answers, func(b Answer) bool {
		return b.Event == a.Event && b.Began == a.Began && b.Failure == "" && !b.Decision.Allowed
	})
}

// made reports whether an operator may have made a key so by the time of an answer.
func (k *key) made(what string, a *Answer) bool {
	return slices.ContainsFunc(k.deeds, func(d *Deed) bool { return d.Kind == Override && d.Sort == what && d.Began <= a.Ended })
}

// earned reports whether there were enough refusals for a ban.
func (k *key) earned(a *Answer) bool {
	n := int64(0)
	for _, r := range slices.Concat(k.refused, k.unknown) {
		if r.Began <= a.Ended {
			n++
		}
	}
	return k.BanAfter > 0 && n >= k.BanAfter
}

// touched reports whether an operator has done something with a key, or tried it.
func (k *key) touched(kinds ...Kind) bool {
	return slices.ContainsFunc(k.deeds, func(d *Deed) bool { return slices.Contains(kinds, d.Kind) })
}

// bans checks that enough refusals make a ban, and that all keep to it: at once, or with lend when nothing
// is held any more. Refusals of which nobody has heard may count too.
func (k *key) bans() {
	if k.BanAfter == 0 || k.loses() || len(k.deeds) > 0 || len(k.unknown) > 0 {
		return
	}
	counted := slices.DeleteFunc(slices.Clone(k.refused), func(a *Answer) bool { return a.Decision.Banned && !a.Decision.BanBegins })
	slices.SortFunc(counted, func(a, b *Answer) int { return cmp.Compare(k.when(a), k.when(b)) })
	refused := int64(0)
	for _, a := range counted {
		if refused++; !a.Decision.BanBegins {
			if refused >= k.BanAfter && k.when(a)-k.when(counted[0]) < banWithin {
				k.wrong("client %d is the refusal %d, and no ban begins", a.Event, refused)
			}
			continue
		}
		for _, b := range k.answers {
			if b.Failure == "" && b.Began > a.Ended+k.Lend && b.Ended < k.when(a)+k.BanFor && !k.undecided(b) && !b.Decision.Banned {
				k.wrong("client %d is not banned, though client %d was", b.Event, a.Event)
			}
		}
		break // later ones begin with what is left of the time in which refusals are counted
	}
}

// loses reports whether an override or a ban may be lost.
func (k *key) loses() bool {
	return k.hasLost() || k.Plan.has(servers, machines, unable)
}

// banWithin is in what time refusals are counted.
const banWithin = 10 * time.Second
