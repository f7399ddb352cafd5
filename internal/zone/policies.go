package zone

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Check is what is to be asked of the store for a request that met a zone.
type Check struct {
	Policy    *QuotaPolicy // nil if there is nothing to ask
	Key       string
	Cost      int64
	DryRun    bool  // the zone may not refuse the request
	Rejection error // the zone refuses the request without asking
	Status    int   // with this one

	Repeated error // the request has different values for a placeholder of the key
}

// reject notes that the request is refused without asking.
func (q *Check) reject(status int, why error) error {
	q.Policy, q.Status, q.Rejection = nil, status, why
	return nil
}

// Apply applies the policies of a zone that has any.
func (z *Zone) Apply(q *Check, r *http.Request, repl *caddy.Replacer, log *zap.Logger) error {
	q.DryRun = z.IsDryRun(q.Key)
	if blocked, err := clientip.MatchAny(z.Block, r); err != nil {
		return err
	} else if blocked {
		return q.reject(z.BlockStatus, errBlocked)
	}
	if exempt, err := clientip.MatchAny(z.Exempt, r); err != nil {
		return err
	} else if exempt {
		q.Policy = nil
		return nil
	}
	if q.Repeated != nil {
		return q.reject(z.RepeatedValuesStatus, q.Repeated)
	}
	if z.MissingKey != MissingShare && z.MissingKey != "" && q.Key == z.Template.Empty {
		if z.MissingKey == MissingReject {
			return q.reject(z.MissingKeyStatus, errNoKey)
		}
		q.Policy = nil
		return nil
	}
	if err := z.resolve(q, repl, r); err != nil {
		if err == errNoPlan {
			return q.reject(z.Plan.Reject, err)
		} else if repeated := (*key.RepeatedError)(nil); errors.As(err, &repeated) {
			return q.reject(z.RepeatedValuesStatus, err)
		}
		if z.invalid.Allow() {
			log.Warn("the request brings no valid limit", zap.String("zone", z.Name), zap.Error(err))
		}
		return q.reject(z.InvalidLimit, errInvalid)
	}
	if q.Policy != nil && q.Policy.Others != nil {
		matters, err := clientip.MatchAny(z.Reserve, r)
		if err != nil {
			return err
		}
		if !matters {
			q.Policy = q.Policy.Others
		}
	}
	return nil
}

var errInvalid = errors.New("the request brings no valid limit")

// resolve works out policy and cost where they depend on the request.
func (z *Zone) resolve(q *Check, repl *caddy.Replacer, r *http.Request) (err error) {
	from := &z.OwnPolicies
	if z.Plans != nil {
		chosen, err := z.choosePlan(repl, r)
		if err != nil {
			return err
		}
		if chosen.Unlimited {
			q.Policy = nil
			return nil
		}
		from = &chosen.Policies
	}
	if q.Policy, err = from.Resolve(repl); err != nil {
		return err
	}
	if q.Cost, err = z.Cost.Resolve(repl); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	if !limit.ValidCost(q.Cost) {
		return fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, q.Cost)
	}
	return nil
}

var errBlocked = errors.New("the request is blocked")

// What missing_key can be.
const (
	MissingShare  = "share"
	MissingSkip   = "skip"
	MissingReject = "reject"
)

var errNoKey = errors.New("the request has no key")

// IsDryRun tells whether the zone may not refuse the key. Each key has a place from 0 to 100
// that depends on nothing but the names of zone and key, so that all instances choose
// alike, and none that is enforced is spared when the share grows.
func (z *Zone) IsDryRun(key string) bool {
	if z.Enforce == nil {
		return z.DryRun
	}
	var hash xxhash.Digest
	hash.ResetWithSeed(z.EnforceSeed)
	_, _ = hash.WriteString(key)
	const steps = 1 << 53 // as many as a float64 can tell apart
	return float64(hash.Sum64()%steps)/steps*100 >= *z.Enforce
}

// RefusalOutcome is what becomes of a request that the zone's limit refuses. The refusal with
// which a ban begins is the limit's.
func (z *Zone) RefusalOutcome(d *algorithms.Decision) outcome.Outcome {
	switch {
	case d.Banned && !d.BanBegins:
		return outcome.Banned
	case len(z.Reserve) > 0:
		return outcome.Shed
	}
	return outcome.Refused
}
