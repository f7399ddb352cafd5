package zone

import (
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

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
