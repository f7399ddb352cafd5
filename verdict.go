package caddyratelimit

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// attempt is one request on its way to a decision: the zones that it met, what is asked
// of the store for each, and what the store decided. The first firm of them may refuse;
// those behind are dry runs.
type attempt struct {
	request   *http.Request
	zones     []*zone.Zone
	grants    []*zone.QuotaPolicy
	checks    []store.Check
	decisions []algorithms.Decision
	firm      int
	holds     bool     // something is held until the request is over
	late      bool     // what is charged depends on the response
	strips    []string // header fields that the response must not keep
}

var attempts = sync.Pool{New: func() any { return new(attempt) }}

// free forgets the request.
func (a *attempt) free() {
	clear(a.zones)
	clear(a.grants)
	clear(a.checks)
	*a = attempt{zones: a.zones[:0], grants: a.grants[:0], checks: a.checks[:0], decisions: a.decisions[:0]}
	attempts.Put(a)
}

// errEarly is as Caddy's own matchers of addresses have it: before the handshake is
// complete anybody may have sent the request, and the client will send it again.
var errEarly = errors.New("TLS handshake not complete, the client's address cannot be verified")

// collect sorts the request into its zones. If one refuses it without asking the store,
// the others are not looked at any more.
func (h *Handler) collect(a *attempt, r *http.Request, repl *caddy.Replacer) (*refusal, error) {
	for _, z := range h.zones {
		if len(z.Matchers) > 0 {
			match, err := clientip.MatchAny(z.Matchers, r)
			if err != nil {
				return nil, err
			}
			if !match {
				continue
			}
		}
		if z.CostHeader != "" {
			a.strips = append(a.strips, z.CostHeader)
		}
		if z.Template.HasAddress && r.TLS != nil && !r.TLS.HandshakeComplete {
			return nil, caddyhttp.Error(http.StatusTooEarly, errEarly)
		}
		q := zone.Check{Policy: z.Policy, Cost: z.FixedCost}
		if q.Key, q.Repeated = z.Template.Expand(repl, r); z.HasPolicies || q.Repeated != nil {
			if err := z.Apply(&q, r, repl, h.logger); err != nil {
				return nil, err
			}
		}
		switch {
		case q.Rejection != nil:
			f := &refusal{zone: z, key: q.Key, dry: q.DryRun, status: q.Status, err: q.Rejection}
			h.reject(r, repl, f)
			if !f.dry {
				return f, nil
			}
		case q.Policy == nil:
			z.Stats.Add(q.Key, outcome.Exempt, stats.Untimed)
			feed.PublishWithoutDecision(r, z.Name, q.Key, outcome.Exempt, nil)
		default:
			a.add(z, &q)
		}
	}
	return nil, nil
}

// add notes what is to be asked of the store for a zone.
func (a *attempt) add(z *zone.Zone, q *zone.Check) {
	check := store.Check{Rule: q.Policy.Rule, Key: q.Key, Cost: q.Cost, Independent: q.DryRun, KeyRules: z.KeyRules}
	if q.Policy.Lends && q.Cost > 0 {
		check.Hold = store.NewHold()
		a.holds = true
	}
	a.late = a.late || z.ChargesLate
	a.zones = append(a.zones, z)
	a.grants = append(a.grants, q.Policy)
	a.checks = append(a.checks, check)
	a.decisions = append(a.decisions, algorithms.Decision{})
	if !q.DryRun {
		a.swap(a.firm, len(a.zones)-1)
		a.firm++
	}
}

func (a *attempt) swap(i, j int) {
	a.zones[i], a.zones[j] = a.zones[j], a.zones[i]
	a.grants[i], a.grants[j] = a.grants[j], a.grants[i]
	a.checks[i], a.checks[j] = a.checks[j], a.checks[i]
}

// decide finds out whether a request may pass, and lets it wait for its turn. If through
// is nil, or err is not, the request ends here. Else its answer goes through that writer,
// and what the request holds must be released when it is over.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request) (through http.ResponseWriter, held *hold, err error) {
	a := attempts.Get().(*attempt)
	defer a.free()
	a.request = r
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	start := h.clock()
	rejected, err := h.collect(a, r, repl)
	switch {
	case err != nil:
		return nil, nil, err
	case rejected != nil:
		a.count(outcome.NotCharged, h.since(start))
		return nil, nil, h.refuse(w, r, rejected, nil)
	case len(a.zones) == 0:
		return w, a.unheld(), nil
	}
	var p patience
	defer p.over()
	passed := outcome.Allowed
	held, err = h.ask(h.store, a, r, &p)
	if err != nil && err != errLeft {
		h.store.Store.Health.Report(err, h.logger)
		passed = outcome.Local
		held, err = h.fallBack(a, r, &p, start, err)
	}
	switch {
	case err == errLeft:
		a.count(outcome.Abandoned, h.since(start))
		tellFailure(r, repl, outcome.Abandoned)
		return nil, nil, caddyhttp.Error(statusClientClosedRequest, err)
	case err != nil:
		a.count(outcome.FailedClosed, h.since(start))
		tellFailure(r, repl, outcome.FailedClosed)
		return nil, nil, h.deny(w, r)
	case len(a.zones) == 0: // nobody has decided, so there is nothing to tell
		if passed != outcome.Allowed {
			tellFailure(r, repl, outcome.FailedOpen)
		}
		return w, a.unheld(), nil
	}
	binding, refused := a.binding(0, a.firm)
	a.countDecisions(passed, refused, h.since(start))
	t := toldOf(r, repl)
	if a.firm < len(a.zones) {
		h.tellDry(t, a, r, passed)
	}
	if a.firm == 0 {
		t.toTrace(r)
		return w, a.orUnheld(held), nil
	}
	w = h.tell(w, t, a, binding, passed)
	t.toTrace(r)
	if !refused {
		return w, a.orUnheld(held), nil
	}
	f := h.refusal(a, binding)
	h.note(r, &f)
	h.tellBans(r, a)
	return nil, nil, h.refuse(w, r, &f, a)
}

// pass asks the store, again after a wait if the zones allow one, until it is clear
// whether the request may pass; and waits for its turn. A client that leaves takes back
// no charge but its turn and what it holds, and breaks off no call: neither is for
// clients to decide.
func (h *Handler) pass(a *attempt, u pool.Session, r *http.Request, p *patience) (held *hold, err error) {
	for n := len(a.checks); ; n = a.firm { // a dry run is not repeated
		if err := u.Take(detached{r.Context()}, a.checks[:n], a.decisions[:n]); err != nil {
			if n == a.firm {
				a.giveUp(u)
			}
			return nil, err
		}
		u.Health.Report(nil, h.logger)
		a.dropExempt()
		if !a.refused() {
			break
		}
		wait := p.next(a)
		if wait <= 0 {
			a.giveUp(u)
			return nil, nil
		}
		if !p.pause(r, wait) {
			a.giveUp(u)
			return nil, errLeft
		}
	}
	if turn := a.delay(); turn > 0 && !a.queue(u, r, p, turn) {
		return nil, errLeft
	}
	if (a.holds || a.late) && len(a.zones) > 0 {
		held = a.hold(u)
	}
	return held, nil
}

// giveUp gives back what dry runs have charged for a request that others refuse: if they
// were enforced, it would have cost nothing in them either.
func (a *attempt) giveUp(u pool.Session) {
	var back []store.Adjustment
	for i := a.firm; i < len(a.checks); i++ {
		if a.charged(i) {
			back = append(back, a.correction(i))
		}
	}
	if len(back) > 0 {
		u.Adjust(back...)
	}
}

func (a *attempt) refused() bool {
	for i := range a.firm {
		if !a.decisions[i].Allowed {
			return true
		}
	}
	return false
}

// binding picks, of some zones, the one that the client should hear of: of those that
// refuse the one with the longest wait, and if none does the one with the smallest share
// left.
func (a *attempt) binding(from, to int) (index int, refused bool) {
	wait, share := time.Duration(-1), 2.0
	for i := from; i < to; i++ {
		d := &a.decisions[i]
		if !d.Allowed {
			if d.RetryAfter > wait {
				index, wait, refused = i, d.RetryAfter, true
			}
			continue
		}
		if left := left(d); !refused && left < share {
			index, share = i, left
		}
	}
	return index, refused
}

// left is the share of the quota that is left.
func left(d *algorithms.Decision) float64 { return float64(d.Remaining) / float64(max(1, d.Quota)) }

// localize reduces the attempt to the zones that decide locally, each with this Caddy's
// share of its limit: all of them, or those whose on_store_error says so. The others have let
// the request pass, which took so long.
func (a *attempt) localize(instances int, took time.Duration, all bool) {
	a.keep(func(i int) bool {
		local := all || a.zones[i].OnStoreError == zone.LocalOnError
		if !local {
			a.note(i, outcome.FailedOpen, took)
		}
		return local
	})
	for i := range a.checks {
		c := &a.checks[i]
		c.Rule = c.Rule.Split(instances)
	}
}

// dropExempt takes the zones out of the attempt from which the request's key is exempt:
// they have not decided, and nothing was charged.
func (a *attempt) dropExempt() {
	for i := range a.decisions {
		if a.decisions[i].Exempt {
			a.keep(func(i int) bool {
				if a.decisions[i].Exempt {
					a.note(i, outcome.Exempt, stats.Untimed)
				}
				return !a.decisions[i].Exempt
			})
			return
		}
	}
}

// keep reduces the attempt to some of its zones.
func (a *attempt) keep(which func(i int) bool) {
	n, firm := 0, 0
	for i := range a.zones {
		if !which(i) {
			continue
		}
		a.zones[n], a.grants[n], a.checks[n], a.decisions[n] = a.zones[i], a.grants[i], a.checks[i], a.decisions[i]
		n++
		if i < a.firm {
			firm++
		}
	}
	clear(a.zones[n:])
	clear(a.grants[n:])
	clear(a.checks[n:])
	a.zones, a.grants, a.checks, a.decisions, a.firm = a.zones[:n], a.grants[:n], a.checks[:n], a.decisions[:n], firm
}

// count notes what became of a request in all its zones alike.
func (a *attempt) count(o outcome.Outcome, took time.Duration) {
	for i := range a.zones {
		a.note(i, o, took)
	}
}

// countDecisions notes what each zone has decided; passed is what became of those that
// passed. Dry runs charge whatever the others say.
func (a *attempt) countDecisions(passed outcome.Outcome, someRefused bool, took time.Duration) {
	for i, z := range a.zones {
		o, firm := passed, i < a.firm
		switch {
		case !a.decisions[i].Allowed && firm:
			o = z.RefusalOutcome(&a.decisions[i])
		case !a.decisions[i].Allowed:
			o = outcome.DryRun
		case someRefused && firm:
			o = outcome.NotCharged
		}
		a.note(i, o, took)
	}
}

// note takes note of what became of the request in one of its zones.
func (a *attempt) note(i int, o outcome.Outcome, took time.Duration) {
	a.zones[i].Stats.Add(a.checks[i].Key, o, took)
	feed.Publish(a.request, a.zones[i].Name, &a.checks[i], o, &a.decisions[i], nil)
}

// processStart is when the clock of decisions began.
var processStart = time.Now()

// clock is the time since the process began, which is cheaper to ask for than the time.
func (h *Handler) clock() time.Duration {
	if h.measures {
		return time.Since(processStart)
	}
	return 0
}

func (h *Handler) since(start time.Duration) time.Duration {
	if h.measures {
		return time.Since(processStart) - start
	}
	return stats.Untimed
}
