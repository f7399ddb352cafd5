package world

import (
	"fmt"
	"slices"
)

var _ = promiseOfKeys("exempt, banned or under another limit is only who was made so", (*key).withoutOperators)

// withoutOperators checks that each ban, exemption and other limit that decided has a cause.
func (k *key) withoutOperators() (violations []string) {
	for i := range k.Answers {
		a := &k.Answers[i]
		if a.Zone != k.zone || a.Key != k.key || a.Failure != "" {
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
			violations = append(violations, fmt.Sprintf("client %d was %s in zone %d, key %d, without a cause", a.Event, was, k.zone, k.key))
		}
	}
	return violations
}

// undecided reports whether another zone of the request was refused from memory, so that this one was not asked.
func (k *key) undecided(a *Answer) bool {
	return slices.ContainsFunc(k.Answers, func(b Answer) bool {
		return b.Event == a.Event && b.Client == a.Client && b.Began == a.Began && b.Failure == "" && !b.Decision.Allowed
	})
}

// made reports whether an operator may have made a key so by the time of an answer.
func (k *key) made(what string, a *Answer) bool {
	return slices.ContainsFunc(k.Deeds, func(d Deed) bool {
		return d.Kind == Override && d.Sort == what && d.Zone == k.zone && d.Key == k.key && d.Began <= a.Ended
	})
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
	return slices.ContainsFunc(k.Deeds, func(d Deed) bool { return d.Zone == k.zone && d.Key == k.key && slices.Contains(kinds, d.Kind) })
}
