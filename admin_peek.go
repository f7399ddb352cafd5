package caddyratelimit

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// keyAnswer is what the admin API tells of a key of a zone.
type keyAnswer struct {
	Zone string `json:"zone"`
	keyText
	Limit string `json:"limit"`

	// Plan is the plan whose limit the numbers are for.
	Plan string `json:"plan,omitempty"`

	// Assumed is the limit that the numbers are for, where requests bring their own. They
	// may have used something under others.
	Assumed string `json:"assumed,omitempty"`

	// Cost is what a request takes of the limit, and CostFrom the placeholder that says so
	// for each, if there is one: then Cost is what it takes where that is empty, or what was
	// asked for.
	Cost     int64  `json:"cost"`
	CostFrom string `json:"cost_from,omitempty"`

	// Outcome is what would become of a request now, by its key: allowed, refused, shed,
	// banned, dry_run, exempt or rejected. Refused says that the zone would refuse it.
	Outcome string `json:"outcome"`
	Refused bool   `json:"refused"`

	// The numbers are the limit's, in the unit of costs, also under a ban. RetryAfter is for
	// how long the limit refuses the cost; a ban may last longer.
	standing

	// Others are the numbers for requests that the zone's reserve is not for.
	Others *standing `json:"others,omitempty"`

	Ban      *banAnswer      `json:"ban,omitempty"`
	Override *overrideAnswer `json:"override,omitempty"`

	// Overrides says that the zone takes overrides.
	Overrides bool `json:"overrides"`

	// Status is that of a rejection because the key is missing, and BlockStatus that of what
	// the zone blocks, whatever the key has used.
	Status      int `json:"status,omitempty"`
	BlockStatus int `json:"block_status,omitempty"`

	// Lately is how often the key came to this Caddy in the last minutes.
	Lately *latelyAnswer `json:"lately,omitempty"`
}

// banAnswer is a ban of a key.
type banAnswer struct {
	// By is who banned it: `override` for an operator, or `refusals` for too many of these.
	By string `json:"by"`

	// EndsIn is in seconds; absent if it has no end.
	EndsIn float64 `json:"ends_in,omitempty"`
}

const (
	byOverride = "override"
	byRefusals = "refusals"
)

// overrideAnswer is an override of a key.
type overrideAnswer struct {
	Kind string `json:"kind"` // limit, exempt or banned

	// Limit is the limit of kind limit. Elsewhere says that it is for plans that count by
	// another algorithm, so that the numbers are not of it.
	Limit     string `json:"limit,omitempty"`
	Elsewhere bool   `json:"elsewhere,omitempty"`

	Note string `json:"note,omitempty"`

	// EndsIn is in seconds; absent if it holds until it is cleared.
	EndsIn float64 `json:"ends_in,omitempty"`
}

// latelyAnswer has counts that are sure; there may have been more.
type latelyAnswer struct {
	Since    time.Time `json:"since"`
	Requests uint64    `json:"requests"`
	Refused  uint64    `json:"refused"`
}

// showKey charges nothing, and makes no key.
func showKey(c *adminCall) error {
	key, err := c.key("plan", "cost")
	if err != nil {
		return err
	}
	answer, err := c.zone.look(c, key)
	if err != nil {
		return err
	}
	return c.answer(answer)
}

// keyError stands in a list of keys for one of which nothing can be told.
type keyError struct {
	Zone  string `json:"zone"`
	Error string `json:"error"`
}

// findKey looks at a key in all zones.
func findKey(c *adminCall) error {
	if err := c.known(append([]string{"cost"}, keyParameters...)...); err != nil {
		return err
	}
	asked, err := c.askedKey()
	if err != nil {
		return err
	}
	if asked.none() {
		return adminError(badRequest, "say which key: ?key=..., percent-encoded, or ?key_base64=..., or ?part=... for each placeholder")
	}
	if _, err := c.cost(0); err != nil {
		return err
	}
	zones := runningZones()
	answers := make([]any, len(zones))
	var group sync.WaitGroup
	for i, z := range zones {
		group.Go(func() {
			key, err := asked.anywhere(z)
			if err == nil {
				answers[i], err = z.look(c, key)
			}
			if err != nil {
				answers[i] = keyError{z.name, err.Error()}
			}
		})
	}
	group.Wait()
	return c.answer(answers)
}

// cost is the cost that the query asks about.
func (c *adminCall) cost(usual int64) (int64, error) {
	return c.number("cost", usual, 0, algorithms.MaxEvents)
}

// look says where a key stands.
func (z *runningZone) look(c *adminCall, key string) (*keyAnswer, error) {
	of, err := z.grantsOf(c.query.Get("plan"))
	if err != nil {
		return nil, err
	}
	granted := of.likely
	cost, err := c.cost(z.cost)
	if err != nil {
		return nil, err
	}
	p := peek{rule: granted.rule, key: key, cost: cost, sanctions: z.sanctions}
	if err := z.kept.using(c, p.ask); err != nil {
		return nil, z.unanswered(err)
	}
	answer := &keyAnswer{
		Zone: z.name, keyText: newKeyText(key, len(key)), Plan: granted.plan, Limit: z.describe(),
		Cost: cost, CostFrom: z.Cost.From, standing: *newStanding(p.decision),
		Ban: p.ban(), Override: p.override(), Overrides: z.Overrides, Lately: z.lately(key),
	}
	if of.varying != nil {
		answer.Assumed = describeOwn(granted.rule, granted.rule.Limit(), true)
	}
	if granted.others != nil {
		others := peek{rule: granted.others.rule, key: key, cost: cost, sanctions: z.sanctions}
		if err := z.kept.using(c, others.ask); err != nil {
			return nil, z.unanswered(err)
		}
		answer.Others = newStanding(others.decision)
	}
	if len(z.block) > 0 {
		answer.BlockStatus = z.BlockStatus
	}
	o := p.outcome(z.Zone)
	if o == outcome.Rejected {
		answer.Status = z.MissingKeyStatus
	}
	answer.Outcome, answer.Refused = outcome.Names[o], o.Declined()
	return answer, nil
}

// lately is how often a key came; nil if that is not known.
func (z *runningZone) lately(key string) *latelyAnswer {
	counts, since := z.tally.Keys.Of(key)
	if counts[topk.Requests].AtLeast == 0 {
		return nil
	}
	return &latelyAnswer{Since: since, Requests: counts[topk.Requests].AtLeast, Refused: counts[topk.Refused].AtLeast}
}

// grantsOf are the limits of a plan, or of requests that name none. The likely one is the one
// that is written, or else one that goes with it; there is one.
func (z *runningZone) grantsOf(name string) (*grants, error) {
	of := &z.own
	if chosen, ok := z.plans[name]; ok {
		of = &chosen.grants
	} else if name != "" {
		return nil, adminError(badRequest, "zone %q has no plan %q; there are %q", z.name, name, slices.Sorted(maps.Keys(z.plans)))
	} else if z.noPlan != nil {
		of = &z.noPlan.grants
	}
	if of.likely == nil {
		return nil, adminError(badRequest, "zone %q limits no requests of this plan; say which plan is meant: plan=..., one of %q",
			z.name, slices.Sorted(maps.Keys(z.plans)))
	}
	return of, nil
}
