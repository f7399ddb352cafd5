package doctor

import (
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// limits finds zones that refuse nothing, or everything, whatever comes.
func limits(z *Zone) []result {
	switch {
	case z.Unlimited:
		return warn(limitPlans.With(), "no request has a limit, because all plans are unlimited")
	case z.Closed:
		return warn(raiseEvents.With(), "the limit allows no request")
	}
	return ok("it can refuse requests")
}

// enforces finds zones that refuse nothing because they are dry runs.
func enforces(z *Zone) []result {
	switch {
	case z.DryRun:
		return warn(enforceZone.With(),
			"dry run: it refuses nothing, and would have refused %d of %d requests", z.Totals[outcome.DryRun], z.met())
	case z.Rollout != "":
		return ok("%s of the keys", z.Rollout)
	}
	return ok("enforced for all keys")
}

// someRequests is how many requests that a zone does not meet are enough for a warning.
const someRequests = 20

// unmet finds zones that no request has met, and says why where that is known.
func unmet(z *Zone) []result {
	switch {
	case z.SinceLoaded > 0:
	case z.Moved != nil:
		return warn(matchMoved.With(z.Moved.Here), "it has met no request, because a handler before rate_limit changes the path: %q arrives as %q", z.Moved.Came, z.Moved.Here)
	case z.Behind != "":
		return warn(moveBefore.With(z.Behind), "no request reaches it, because the handler %s before it answers them all", z.Behind)
	case z.Matches && z.Missed >= someRequests:
		return warn(correctMatch.With(), "it has matched none of the %d requests that have reached it", z.Missed)
	case z.Missed == 0 && z.Served >= someRequests:
		return warn(correctMatch.With(), "no request has reached it, although its server has had %d", z.Served)
	case z.Matches && z.Elsewhere >= enough:
		return warn(correctMatch.With(), "it has met no request, although another zone has met %d", z.Elsewhere)
	}
	return nil
}

// meets says how many requests the zone has met.
func meets(z *Zone) []result {
	if found := unmet(z); found != nil {
		return found
	}
	if n := z.met(); n >= enough && z.refused() == 0 && z.For >= week {
		return ok("%d requests, none of them refused in %d days", n, int(z.For.Hours()/24))
	} else if n > 0 {
		return ok("%d requests, %d of them refused", n, z.refused())
	}
	return ok("no requests yet")
}

func (z *Zone) refused() (n uint64) {
	for o, of := range z.Totals {
		if outcome.Outcome(o).Refused() {
			n += of
		}
	}
	return n
}

// exempts finds zones from which all requests are exempt.
func exempts(z *Zone) []result {
	switch n := z.Totals[outcome.Exempt]; {
	case n == z.met() && n >= enough && !z.Unlimited:
		return warn(narrowExempt.With(), "all %d requests were exempt, so it refuses nothing", n)
	case n > 0:
		return ok("%d of %d requests were exempt", n, z.met())
	case z.Exempts && z.met() >= enough:
		return ok("exempt has matched none of %d requests", z.met())
	}
	return nil
}

// rejects finds zones that refuse all requests without asking the limit.
func rejects(z *Zone) []result {
	switch n := z.Totals[outcome.Rejected]; {
	case n == z.met() && n >= enough && z.Blocks && z.Keyless == 0:
		return warn(seeRejected.With(), "all %d requests were rejected before the limit was asked, as by a block list", n)
	case n == z.met() && n >= enough:
		return fail(seeRejected.With(),
			"all %d requests were rejected before the limit was asked", n)
	case n > 0:
		return ok("%d of %d requests were rejected before the limit was asked", n, z.met())
	}
	return nil
}

// decides says what happens to the zone's requests while its store does not answer.
func decides(z *Zone) []result {
	if !z.Silent {
		return nil
	}
	switch z.OnStoreError {
	case "deny":
		return fail(seeStore.With(z.Store), "it refuses all requests, because its store does not answer")
	case "local":
		return warn(seeStore.With(z.Store), "each instance counts for itself, because the store does not answer")
	}
	return fail(limitHere.With(z.Store), "it limits nothing, because its store does not answer")
}

// shares finds zones that count in this process because no store is given for them, while others share one.
func shares(z *Zone) []result {
	if !z.Alone {
		return nil
	}
	return warn(giveStore.With(), "it counts in the memory of each instance, while other zones of this config share %s", z.Shared)
}
