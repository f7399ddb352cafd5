package zone

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Check is what to ask the store about a request in a zone.
type Check struct {
	Policy    *QuotaPolicy // nil if no store is needed
	Key       string
	Plan      string // the name of the request's plan; empty if there is none or the zone did not look for it
	Cost      int64
	DryRun    bool  // the zone may not refuse the request
	Rejection error // why the zone refuses the request without asking the store
	Status    int   // of the rejection
	Invalid   error // why the request has no valid limit; for operators

	Network *store.Network      // that decides about the key; nil if none does
	Banned  algorithms.Decision // by it; the Rejection is then that of a limit

	Repeated error // the request has different values for a placeholder of the key
}

// reject records that the request is refused without asking the store.
func (c *Check) reject(status int, why error) error {
	c.Policy, c.Status, c.Rejection = nil, status, why
	return nil
}

// Apply applies the zone's policies to a request: block, exempt, missing_key, and plans and limits from
// placeholders. It reads no body of a request whose network is banned.
func (z *Zone) Apply(c *Check, r *placeholder.Request, networks *store.Networks, log *zap.Logger) error {
	c.DryRun = z.IsDryRun(c.Key)
	if blocked, err := clientip.MatchAny(z.Block, r.Request); err != nil {
		return err
	} else if blocked {
		return c.reject(BlockStatus, errBlocked)
	}
	if exempt, err := clientip.MatchAny(z.Exempt, r.Request); err != nil {
		return err
	} else if exempt {
		c.Policy = nil
		return nil
	}
	if c.Repeated != nil {
		return c.reject(http.StatusBadRequest, c.Repeated)
	}
	if z.MissingKey.Word != config.MissingShare && c.Key == z.Template.Empty {
		if z.MissingKey.Word == config.Reject {
			return c.reject(z.KeylessStatus(), errNoKey)
		}
		c.Policy = nil
		return nil
	}
	if err := z.resolve(c, r); err != nil {
		if err == errNoPlan {
			return c.reject(z.PlanlessStatus(), err)
		} else if repeated := (*key.RepeatedError)(nil); errors.As(err, &repeated) {
			return c.reject(http.StatusBadRequest, err)
		}
		if log != nil && z.invalid.Allow() {
			log.Warn("the request has no valid limit", zap.String("zone", z.Name), zap.Error(err))
		}
		c.Invalid = err
		return c.reject(http.StatusForbidden, errInvalid)
	}
	return nil
}

// resolve sets the quota policy and the cost, which may depend on the request.
func (z *Zone) resolve(c *Check, r *placeholder.Request) (err error) {
	policies := &z.OwnPolicies
	if z.Plans != nil {
		chosen, err := z.choosePlan(r)
		if err != nil {
			return err
		}
		c.Plan = chosen.Name
		if chosen.Unlimited {
			c.Policy = nil
			return nil
		}
		policies = &chosen.Policies
	}
	if c.Policy, err = policies.Resolve(r.Replacer()); err != nil {
		return err
	}
	if c.Cost, err = z.Cost.Resolve(r.Replacer()); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	if z.costOfBody { // what clients write can only raise it
		c.Cost = max(c.Cost, z.Cost.Number, 1)
	}
	if !config.ValidCost(c.Cost) {
		return fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, c.Cost)
	}
	return nil
}

// Rollout says in words that the limit is not enforced for all keys: "dry run" or "enforce 50 %".
// It is empty if the limit is.
func (z *Zone) Rollout() string {
	switch share := z.EnforcedShare(); share {
	case 0:
		return "dry run"
	case 100:
		return ""
	default:
		return "enforce " + strconv.FormatFloat(share, 'f', -1, 64) + " %"
	}
}

// Enforces reports whether the limit is enforced for any key.
func (z *Zone) Enforces() bool { return z.EnforcedShare() > 0 }

// IsDryRun reports whether the limit is only tried out on the key. With enforce, each key has a
// place from 0 to 100 that depends on nothing but the zone's name and the key. So all instances
// choose the same keys, and keys that the limit is enforced for stay so when the share grows.
func (z *Zone) IsDryRun(key string) bool {
	if z.Enforce == nil {
		return false
	}
	var hash xxhash.Digest
	hash.ResetWithSeed(z.enforceSeed)
	_, _ = hash.WriteString(key)
	const steps = 1 << 53 // a float64 holds whole numbers up to this one exactly
	return float64(hash.Sum64()%steps)/steps*100 >= *z.Enforce
}

// RefusalOutcome returns the outcome of a request that the store refuses. The refusal that begins a ban still counts as one
// by the limit.
func RefusalOutcome(d *algorithms.Decision) outcome.Outcome {
	if d.Banned && !d.BanBegins {
		return outcome.Banned
	}
	return outcome.Limited
}
