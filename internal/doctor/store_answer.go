package doctor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// answers finds stores that do not answer. Why they do not is the matter of other checks where the
// store knows it.
func answers(s *Store) (all []result) {
	switch {
	case s.InProcess:
		return ok("in this process")
	case s.Examined == nil && s.Err != nil:
		return fail(seeServer.With(), "does not answer: %v", s.Err)
	case s.Examined == nil && !s.Tested:
		return cannotSay("it has no zone with a limit to ask about", advice.Text{})
	case s.Examined == nil:
		return ok("answers")
	}
	for _, c := range s.Examined.Servers {
		switch {
		case c.Trouble == store.TroubleAnswer:
			all = append(all, fail(seeServer.With(), "%sdoes not answer: %v", s.of(c), c.Err)...)
		case c.Trouble == "" && c.Version != "":
			all = append(all, ok("%sanswers, version %s", s.of(c), c.Version)...)
		case c.Trouble == "":
			all = append(all, ok("%sanswers", s.of(c))...)
		}
	}
	return all
}

// of begins a finding about a server, if the store has several.
func (s *Store) of(c store.Condition) string {
	if len(s.Examined.Servers) == 1 {
		return ""
	}
	return c.Address + ": "
}

// trouble returns a check that finds servers which do not decide for one reason. Their error may have a better fix.
func trouble(kind string, fix advice.Text) func(*Store) []result {
	return func(s *Store) (all []result) {
		if s.Examined == nil {
			return nil
		}
		for _, c := range s.Examined.Servers {
			if c.Trouble == kind {
				found, better := advice.Split(c.Err.Error())
				all = append(all, fail(cmp.Or(better, fix), "%scannot decide: %s", s.of(c), found)...)
			}
		}
		return all
	}
}

// breaker finds stores that are not asked because calls have failed.
func breaker(s *Store) []result {
	switch {
	case s.Breaker == store.BreakerOpen:
		return fail(mendStore.With(),
			"the breaker is open: requests do not ask the store")
	case s.Failing:
		return warn(seeErrors.With(), "calls of requests have failed within the last few seconds")
	case s.Breaker != "" && !s.Silent():
		return ok("%s", s.Breaker)
	}
	return nil
}

// busy finds instances that have no time to ask the store. The store may be well.
func busy(s *Store) []result {
	if !s.Busy {
		return nil
	}
	return warn(relieve.With(), "this Caddy was too busy to ask the store within the last minute, and refused requests with status 503")
}

// silent finds servers that a failover may need.
func silent(s *Store) (all []result) {
	for _, m := range s.Mute {
		all = append(all, warn(mendSilent.With(), "%s has not said for %v where the limits are kept: %v", m.Address, round(time.Since(m.Since)), m.Err)...)
	}
	return all
}

// roundTrip compares the round trip with the timeout.
func roundTrip(s *Store) (all []result) {
	for _, c := range s.deciding() {
		switch limit := s.Examined.Timeout; {
		case limit == 0 || c.RoundTrip == 0:
		case c.RoundTrip >= limit:
			all = append(all, fail(useNearer.With(), "%sa round trip takes %v, and the timeout is %v: no request is decided in time", s.of(c), round(c.RoundTrip), limit)...)
		case 3*c.RoundTrip > limit:
			all = append(all, warn(advice.NearerStore.With(),
				"%sa round trip takes %v, more than a third of the timeout of %v", s.of(c), round(c.RoundTrip), limit)...)
		default:
			all = append(all, ok("%sa round trip takes %v of the timeout of %v", s.of(c), round(c.RoundTrip), limit)...)
		}
	}
	return all
}

// waits compares how long requests have waited with the timeout. Of few of them, a single one may be late.
func waits(s *Store) []result {
	if s.Asked == 0 || s.Examined == nil {
		return nil
	}
	of, long := fmt.Sprintf("%d requests of the last minute waited for it: half of them at most %v, 99 %% at most %v", s.Asked, round(s.P50), round(s.P99)), s.P99
	if s.Asked < enough {
		long = s.P50
	}
	if limit := s.Examined.Timeout; s.Asked >= enough/10 && limit > 0 && 3*long > limit {
		return warn(findSlowness.With(), "%s; the timeout is %v", of, limit)
	}
	return ok("%s", of)
}

// clock compares the clocks.
func clock(s *Store) (all []result) {
	for _, c := range s.deciding() {
		const most = 1e9
		switch sure := max(c.ClockAhead, -c.ClockAhead) - c.ClockTook/2; {
		case c.ClockTook == 0:
		case sure <= most:
			all = append(all, ok("%sits clock agrees with this instance's", s.of(c))...)
		case c.ClockAhead > 0:
			all = append(all, warn(setClocks.With(), "%sits clock is %v ahead of this instance's", s.of(c), round(c.ClockAhead))...)
		default:
			all = append(all, warn(setClocks.With(), "%sits clock is %v behind this instance's", s.of(c), round(-c.ClockAhead))...)
		}
	}
	return all
}
