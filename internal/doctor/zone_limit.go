package doctor

import (
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// limits finds zones that refuse nothing, or everything, whatever comes.
func limits(z *Zone) []result {
	switch {
	case z.Unlimited:
		return warn("give a plan a limit, or remove the zone", "no request has a limit, because all plans are unlimited")
	case z.Closed:
		return warn("raise events, or use respond to refuse all requests", "the limit allows no request")
	}
	return ok("it can refuse requests")
}

// enforces finds zones that refuse nothing because they are dry runs.
func enforces(z *Zone) []result {
	switch {
	case z.DryRun:
		return warn("enforce it when the figures are right: remove dry_run, or raise enforce",
			"dry run: it refuses nothing, and would have refused %d of %d requests", z.Totals[outcome.DryRun], z.met())
	case z.Rollout != "":
		return ok("%s of the keys", z.Rollout)
	}
	return ok("enforced for all keys")
}

// meets finds zones whose matchers no request fits.
func meets(z *Zone) []result {
	switch n := z.met(); {
	case n > 0:
		return ok("%d requests, %d of them refused", n, z.refused())
	case z.Matches && z.Elsewhere >= enough:
		return warn("correct its match, or the route that it is in; 'caddy rate-limit explain' shows what fits",
			"it has met no request, although another zone has met %d", z.Elsewhere)
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
		return warn("narrow exempt, or see missing_key and the unlimited plans", "all %d requests were exempt, so it refuses nothing", n)
	case n > 0:
		return ok("%d of %d requests were exempt", n, z.met())
	}
	return nil
}

// rejects finds zones that refuse all requests without asking the limit.
func rejects(z *Zone) []result {
	switch n := z.Totals[outcome.Rejected]; {
	case n == z.met() && n >= enough:
		return fail("'caddy rate-limit watch --outcome rejected' shows why: block, or no key, plan or valid limit",
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
	fix := "see store " + z.Store
	switch z.OnStoreError {
	case "deny":
		return fail(fix, "it refuses all requests, because its store does not answer")
	case "local":
		return warn(fix, "each instance counts for itself, because the store does not answer")
	}
	return fail(fix+"; on_store_error local would limit all the same", "it limits nothing, because its store does not answer")
}
