package zone

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Check is a request on its way through a zone, and what to ask the store about it.
type Check struct {
	Zone      *Zone
	Policy    *QuotaPolicy // the limit; nil if no store is needed
	Key       string
	Plan      string // the name of the request's plan; empty if there is none or the zone did not look for it
	Cost      int64
	DryRun    bool  // the zone may not refuse the request
	Rejection error // why the zone refuses the request without asking the store
	Status    int   // of the rejection
	Invalid   error // why the request has no valid limit; for operators

	Network  *store.Network      // that decides about the key; nil if none does
	Decision algorithms.Decision // of the store, or of a network that is banned

	networks *store.Networks // that have overrides in the zone; nil without them
	plan     *Plan           // or the zone's own limit
	repeated error           // the request has different values for a placeholder of the key
	read     bool            // the body, so matchers may look at its fields
	open     bool            // a matcher that looks at its fields decides
	mayBlock bool            // and block has one
}

// Why a zone refuses a request without asking the store; or else a [*key.RepeatedError].
var (
	errBlocked = errors.New("the request is blocked")
	ErrNoKey   = errors.New("the request has no key")
	errNoPlan  = errors.New("the request has no plan")
	errInvalid = errors.New("the request has no valid limit")
)

// found is what a step finds out about a request.
type found uint8

const (
	passes found = iota // the next step decides
	misses              // the request does not meet the zone
	ends                // the zone asks no store: see skip and reject
)

// step is a step of a request through a zone.
type step func(*Zone, *Check, *placeholder.Request) (found, error)

// makeSteps sets the steps that the zone's options ask for, in the order in which requests take them.
func (z *Zone) makeSteps() {
	for _, s := range []struct {
		needed bool
		take   step
	}{
		{len(z.Matchers) > 0, (*Zone).match},
		{true, (*Zone).findKey},
		{len(z.Block) > 0, (*Zone).block},
		{len(z.Exempt) > 0, (*Zone).exempt},
		{z.fields != nil, (*Zone).readBody},
		{true, (*Zone).needKey},
		{z.Plan != nil, (*Zone).choosePlan},
		{z.Policy == nil, (*Zone).findLimit},
		{z.Cost.From != "", (*Zone).findCost},
		{z.TakesNetworks(), (*Zone).askNetwork},
	} {
		if s.needed {
			z.steps = append(z.steps, s.take)
		}
	}
}

// Meet reports whether a request meets the zone, and sets what to ask the store about it. It counts
// nothing. Networks are those that have overrides in the zone; nil without them.
func (z *Zone) Meet(c *Check, r *placeholder.Request, networks *store.Networks) (met bool, err error) {
	*c = Check{}
	c.Zone, c.Policy, c.Cost, c.plan, c.networks = z, z.Policy, z.Cost.Number, z.Own, networks
	for _, take := range z.steps {
		if found, err := take(z, c, r); err != nil || found != passes {
			return found != misses, err
		}
	}
	return true, nil
}

// skip records that the zone lets the request pass without asking the store.
func (c *Check) skip() (found, error) {
	c.Policy = nil
	return ends, nil
}

// reject records that the request is refused without asking the store.
func (c *Check) reject(status int, why error) (found, error) {
	c.Policy, c.Status, c.Rejection = nil, status, why
	return ends, nil
}

func (z *Zone) match(c *Check, r *placeholder.Request) (found, error) {
	if len(z.Matchers) == 0 {
		return passes, nil
	}
	if matches, open, err := z.matching.ask(c, r.Request); err != nil || !matches && !open {
		return misses, err
	}
	return passes, nil
}

// errTooEarly means what it means in Caddy's own matchers of addresses: before the TLS handshake is
// complete, the client's address may be forged. The client sends the request again.
var errTooEarly = errors.New("TLS handshake not complete, the client's address cannot be verified")

func (z *Zone) findKey(c *Check, r *placeholder.Request) (found, error) {
	if z.Template.HasAddress && r.TLS != nil && !r.TLS.HandshakeComplete {
		return passes, caddyhttp.Error(http.StatusTooEarly, errTooEarly)
	}
	c.Key, c.repeated = z.Template.Expand(r)
	c.DryRun = z.IsDryRun(c.Key)
	return passes, nil
}

func (z *Zone) block(c *Check, r *placeholder.Request) (found, error) {
	matches, open, err := z.blocking.ask(c, r.Request)
	if c.mayBlock = open; err == nil && matches {
		return c.reject(BlockStatus, errBlocked)
	}
	return passes, err
}

// exempt lets a request pass, unless its body may say that it is blocked: block comes first.
func (z *Zone) exempt(c *Check, r *placeholder.Request) (found, error) {
	matches, _, err := z.exempting.ask(c, r.Request)
	if err == nil && matches && !c.mayBlock {
		return c.skip()
	}
	return passes, err
}

// readBody reads the body of a request whose fields the zone looks at. Nothing is read if that is decided without it: by block,
// exempt or a ban of the network, whatever the plan. Otherwise a client could have this process read and keep bodies that
// nobody wants. A request whose body cannot be read meets the zone, which refuses it.
func (z *Zone) readBody(c *Check, r *placeholder.Request) (found, error) {
	if n := c.network(); n != nil && n.Override.Kind == store.KindBanned && c.repeated == nil {
		c.Policy = cmp.Or(c.Policy, z.likely) // if it depends on the request, any of them is told
		return z.askNetwork(c, r)
	}
	if !z.readsAll && !c.open {
		return passes, nil
	}
	if refusal := z.readFields(r); refusal != nil {
		return c.reject(refusal.Status, refusal.Err)
	}
	c.read = true
	for _, take := range [...]step{(*Zone).match, (*Zone).findKey, (*Zone).block, (*Zone).exempt} {
		if found, err := take(z, c, r); err != nil || found != passes {
			return found, err
		}
	}
	return passes, nil
}

// needKey refuses a request whose key is not certain, and follows missing_key if it has none.
func (z *Zone) needKey(c *Check, _ *placeholder.Request) (found, error) {
	switch {
	case c.repeated != nil:
		return c.reject(http.StatusBadRequest, c.repeated)
	case z.MissingKey.Word == config.MissingShare || c.Key != z.Template.Empty:
		return passes, nil
	case z.MissingKey.Word == config.Reject:
		return c.reject(z.KeylessStatus(), ErrNoKey)
	}
	return c.skip()
}

func (z *Zone) choosePlan(c *Check, r *placeholder.Request) (found, error) {
	name, err := z.PlanTemplate.Expand(r)
	if err != nil {
		return z.refuseInvalid(c, err)
	}
	chosen := cmp.Or(z.planByName[z.PlanTemplate.NormalizeName(name)], z.DefaultPlan)
	if chosen == nil {
		return c.reject(cmp.Or(z.Plan.Default.Status, http.StatusForbidden), errNoPlan)
	}
	c.Plan, c.plan = chosen.Name, chosen
	if chosen.Likely == nil {
		return c.skip()
	}
	return passes, nil
}

func (z *Zone) findLimit(c *Check, r *placeholder.Request) (_ found, err error) {
	if c.Policy, err = c.plan.Resolve(r.Replacer()); err != nil {
		return z.refuseInvalid(c, err)
	}
	return passes, nil
}

func (z *Zone) findCost(c *Check, r *placeholder.Request) (_ found, err error) {
	if c.Cost, err = z.Cost.Resolve(r.Replacer()); err != nil {
		return z.refuseInvalid(c, fmt.Errorf("cost: %w", err))
	}
	if z.costOfBody { // what clients write can only raise it
		c.Cost = max(c.Cost, z.Cost.Number, 1)
	}
	if !config.ValidCost(c.Cost) {
		return z.refuseInvalid(c, fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, c.Cost))
	}
	return passes, nil
}

// refuseInvalid refuses a request that has no valid plan, limit or cost.
func (z *Zone) refuseInvalid(c *Check, err error) (found, error) {
	if repeated, ok := errors.AsType[*key.RepeatedError](err); ok {
		return c.reject(http.StatusBadRequest, repeated)
	}
	c.Invalid = err
	return c.reject(http.StatusForbidden, errInvalid)
}
