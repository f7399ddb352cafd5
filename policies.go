package caddyratelimit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// asked is what is to be asked of the store for a request that met a zone.
type asked struct {
	grant  *grant // nil if there is nothing to ask
	key    string
	cost   int64
	dry    bool  // the zone may not refuse the request
	why    error // the zone refuses the request without asking
	status int   // with this one

	repeated error // the request has different values for a placeholder of the key
}

// refuse notes that the request is refused without asking.
func (q *asked) refuse(status int, why error) error {
	q.grant, q.status, q.why = nil, status, why
	return nil
}

// judge applies the policies of a zone that has any.
func (z *liveZone) judge(q *asked, r *http.Request, repl *caddy.Replacer, log *zap.Logger) error {
	q.dry = z.dry(q.key)
	if blocked, err := clientip.MatchAny(z.block, r); err != nil {
		return err
	} else if blocked {
		return q.refuse(z.BlockStatus, errBlocked)
	}
	if exempt, err := clientip.MatchAny(z.exempt, r); err != nil {
		return err
	} else if exempt {
		q.grant = nil
		return nil
	}
	if q.repeated != nil {
		return q.refuse(z.RepeatedValuesStatus, q.repeated)
	}
	if z.MissingKey != missingShare && z.MissingKey != "" && q.key == z.key.Nothing {
		if z.MissingKey == missingReject {
			return q.refuse(z.MissingKeyStatus, errNoKey)
		}
		q.grant = nil
		return nil
	}
	if err := z.work(q, repl, r); err != nil {
		if err == errNoPlan {
			return q.refuse(z.Plan.Reject, err)
		} else if repeated := (*key.RepeatedError)(nil); errors.As(err, &repeated) {
			return q.refuse(z.RepeatedValuesStatus, err)
		}
		if z.invalid.Allow() {
			log.Warn("the request brings no valid limit", zap.String("zone", z.name), zap.Error(err))
		}
		return q.refuse(z.InvalidLimit, errInvalid)
	}
	if q.grant != nil && q.grant.others != nil {
		matters, err := clientip.MatchAny(z.Reserve, r)
		if err != nil {
			return err
		}
		if !matters {
			q.grant = q.grant.others
		}
	}
	return nil
}

var errInvalid = errors.New("the request brings no valid limit")

// work works out grant and cost where they depend on the request.
func (z *liveZone) work(q *asked, repl *caddy.Replacer, r *http.Request) (err error) {
	from := &z.own
	if z.plans != nil {
		chosen, err := z.choosePlan(repl, r)
		if err != nil {
			return err
		}
		if chosen.unlimited {
			q.grant = nil
			return nil
		}
		from = &chosen.grants
	}
	if q.grant, err = from.of(repl); err != nil {
		return err
	}
	if q.cost, err = z.Cost.Resolve(repl); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	if !limit.ValidCost(q.cost) {
		return fmt.Errorf("cost must be from 0 to %d, got %d", algorithms.MaxEvents, q.cost)
	}
	return nil
}

var errBlocked = errors.New("the request is blocked")
