package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
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

var _ = promiseOfKeys("an override that was set holds everywhere", (*key).holds)

// holds checks that each answer keeps to an override that was set before, and is not over: at once, or with lend when an
// instance has asked again. What others do to the key, and what loses an override, are other matters.
func (k *key) holds() (violations []string) {
	if k.losesRules() {
		return nil
	}
	var asks []Command
	if k.touched(Override) {
		asks = k.asks()
	}
	for _, d := range k.Deeds {
		e := k.Plan.Events[d.Event]
		if d.Zone != k.zone || d.Key != k.key || d.Kind != Override || d.Failure != "" || k.changed(d) {
			continue
		}
		from, to := d.Ended, d.Began+e.For
		if k.Lend > 0 {
			from += time.Second + timeout
		}
		for i := range k.Answers {
			a := &k.Answers[i]
			if a.Zone != k.zone || a.Key != k.key || a.Failure != "" || a.Began <= from && !k.heard(d, a) && !a.knows(d, asks) || k.fromMemory(a) || e.For > 0 && a.Ended >= to || k.undecided(a) {
				continue
			}
			if was := a.Decision; !d.kept(a) {
				violations = append(violations, fmt.Sprintf("client %d was not %s in zone %d, key %d, as it was set at %v: %+v", a.Event, d.Sort, k.zone, k.key, d.Ended, was))
			}
		}
	}
	return violations
}

// kept reports whether an answer keeps to an override.
func (d *Deed) kept(a *Answer) bool {
	switch was := a.Decision; d.Sort {
	case exempt:
		return was.Exempt
	case banned:
		return was.Banned && !was.Allowed
	default:
		return was.Override != ""
	}
}

// heard reports whether the instance of an answer has kept to an override before: then it knows of it, though it may
// decide alone.
func (k *key) heard(set Deed, a *Answer) bool {
	return slices.ContainsFunc(k.Answers, func(b Answer) bool {
		return b.Zone == k.zone && b.Key == k.key && b.Instance == a.Instance && b.Failure == "" && b.Began > set.Ended && b.Ended < a.Began && set.kept(&b)
	})
}

// asks returns when instances have asked for more of the key, where nothing else is sent that looks like that: adjustments
// are made by the same script.
func (k *key) asks() (all []Command) {
	adjusts := func(b Answer) bool { return b.Zone == k.zone && b.Key == k.key && b.Adjusted != 0 }
	if k.Lend == 0 || k.slots() || slices.ContainsFunc(k.Answers, adjusts) {
		return nil
	}
	state, digest := fmt.Sprintf("{%s}:%s:", keyName(k.key), zoneName(k.zone)), sum(lua.Lend)
	for _, c := range k.Commands {
		lends := len(c.Args) > 3 && (c.Args[0] == "evalsha" && c.Args[1] == digest || c.Args[0] == "eval" && c.Args[1] == lua.Lend)
		if lends && slices.ContainsFunc(c.Args[3:], func(arg string) bool { return strings.Contains(arg, state) }) {
			all = append(all, c)
		}
	}
	return all
}

// knows reports whether the instance of an answer has asked for more of the key after an override was set, and has heard
// the answer: then it knows of the override, though no client came with that ask.
func (a *Answer) knows(set Deed, asks []Command) bool {
	return slices.ContainsFunc(asks, func(c Command) bool {
		return c.Instance == a.Instance && c.At > set.Ended && c.At+hearsIn < a.Began
	})
}

// hearsIn is in what time an answer comes if nothing is wrong.
const hearsIn = time.Millisecond

// fromMemory reports whether a refusal is perhaps one of before, because no answer has come.
func (k *key) fromMemory(a *Answer) bool { return a.Ended-a.Began >= timeout && !a.Decision.Allowed }

// changed reports whether an operator has changed again what was set, or has tried it.
func (k *key) changed(set Deed) bool {
	return slices.ContainsFunc(k.Deeds, func(d Deed) bool {
		return d.Zone == k.zone && d.Key == k.key && d.Event != set.Event && d.Ended >= set.Began && slices.Contains([]Kind{Override, Clear, Unban, Reset}, d.Kind)
	})
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
