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
// instance has heard of it, which it does soon unless messages get lost. What others do to the key later, and what loses
// an override, are other matters.
func (k *key) holds() (violations []string) {
	if k.loses() {
		return nil
	}
	var asks []Command
	if k.touched(Override) {
		asks = k.asks()
	}
	for _, d := range k.Deeds {
		e := k.Plan.Events[d.Event]
		if d.Zone != k.zone || d.Key != k.key || d.Kind != Override || d.Failure != "" {
			continue
		}
		from, to := d.Ended, k.changed(d)
		if e.For > 0 {
			to = min(to, d.Began+e.For)
		}
		if k.Lend > 0 {
			from += time.Second + timeout
		}
		for i := range k.Answers {
			a := &k.Answers[i]
			if a.Zone != k.zone || a.Key != k.key || a.Failure != "" || a.Ended >= to || k.fromMemory(a) || k.undecided(a) {
				continue
			}
			known := a.Began > from && (k.Lend == 0 || !k.Plan.has(links)) || k.heard(d, a) || a.knows(d, asks)
			if was := a.Decision; known && !d.kept(a) {
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
// decide alone. What it holds under the limit of another plan or config, it spends until it learns of the change there too.
func (k *key) heard(set Deed, a *Answer) bool {
	return slices.ContainsFunc(k.Answers, func(b Answer) bool {
		return b.Zone == k.zone && b.Key == k.key && b.Instance == a.Instance && b.Failure == "" && b.Began > set.Ended && b.Ended < a.Began && set.kept(&b) && k.sameLimit(a, &b)
	})
}

// sameLimit reports whether two requests meet the same limit of the zone for sure. A config that is loaded again has another one
// only for requests.
func (k *key) sameLimit(a, b *Answer) bool {
	if !k.Plan.varies(k.zone) {
		return true
	}
	one, other := &k.Plan.Events[a.Event], &k.Plan.Events[b.Event]
	reloads := slices.ContainsFunc(k.Plan.Events, func(e Event) bool { return e.Kind == Reload && e.Zone == k.zone && e.Cost > 0 })
	return one.Sort == other.Sort && one.Kind == other.Kind && (one.Kind == Take || !reloads)
}

// asks returns when instances have asked what is new: for more of the key under its only limit, where nothing else is sent that
// looks like that, because adjustments are made by the same script, or which keys have changed.
func (k *key) asks() (all []Command) {
	if k.Lend == 0 {
		return nil
	}
	adjusts := slices.ContainsFunc(k.Answers, func(b Answer) bool { return b.Zone == k.zone && b.Key == k.key && b.Adjusted != 0 })
	state, changes := fmt.Sprintf("{%s}:%s:", k.Plan.tag(k.key), zoneName(k.zone)), ":changes"
	for _, c := range k.Commands {
		about := func(part string) bool {
			return slices.ContainsFunc(c.Args[3:], func(arg string) bool { return strings.Contains(arg, part) })
		}
		if c.calls(lua.Lend.Text()) && !adjusts && !k.Plan.varies(k.zone) && about(state) || c.calls(lua.Get.Text()) && about(changes) {
			all = append(all, c)
		}
	}
	return all
}

// calls reports whether a command is the call of a script.
func (c *Command) calls(script string) bool {
	return len(c.Args) > 3 && (c.Args[0] == "evalsha" && c.Args[1] == sum(script) || c.Args[0] == "eval" && c.Args[1] == script)
}

// knows reports whether the instance of an answer has asked what is new after an override was set, and has heard the
// answer: then it knows of the override, though no client came with that ask.
func (a *Answer) knows(set Deed, asks []Command) bool {
	return slices.ContainsFunc(asks, func(c Command) bool {
		return c.Instance == a.Instance && c.At > set.Ended && c.Heard > 0 && c.Heard < c.Sent+hearsIn && c.Heard+time.Microsecond < a.Began
	})
}

// hearsIn is in what time an answer comes that its instance waits for: it was asked perhaps some time before the message was sent.
const hearsIn = timeout / 2

// fromMemory reports whether a refusal is perhaps one of before, because no answer has come.
func (k *key) fromMemory(a *Answer) bool { return a.Ended-a.Began >= timeout && !a.Decision.Allowed }

// changed returns when an operator may have changed again what was set, or has tried it. What failed may still be on its way, and
// come after what was done later.
func (k *key) changed(set Deed) (at time.Duration) {
	at = k.Length
	for _, d := range k.Deeds {
		if d.Zone == k.zone && d.Key == k.key && d.Event != set.Event && (d.Ended >= set.Began || d.Failure != "") && slices.Contains([]Kind{Override, Clear, Unban, Reset}, d.Kind) {
			at = min(at, d.Began)
		}
	}
	return at
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
