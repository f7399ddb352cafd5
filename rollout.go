package caddyratelimit

import (
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
)

func (z *Zone) provisionRollout(log *zap.Logger) error {
	if z.Enforce == nil {
		return nil
	}
	switch share := *z.Enforce; {
	case z.DryRun:
		return errors.New("dry_run and enforce exclude each other: enforce 0 is a dry run")
	case math.IsNaN(share) || share < 0 || share > 100:
		return fmt.Errorf("enforce must be from 0 to 100 percent, got %v", share)
	case share > 0 && share < 100 && !z.live.key.Varies():
		log.Warn("enforce chooses among keys, and this zone has just one", zap.String("zone", z.live.name))
	}
	z.live.enforced = xxhash.Sum64String(z.live.name)
	return nil
}

// dry tells whether the zone may not refuse the key. Each key has a place from 0 to 100
// that depends on nothing but the names of zone and key, so that all instances choose
// alike, and none that is enforced is spared when the share grows.
func (z *liveZone) dry(key string) bool {
	if z.Enforce == nil {
		return z.DryRun
	}
	var hash xxhash.Digest
	hash.ResetWithSeed(z.enforced)
	_, _ = hash.WriteString(key)
	const steps = 1 << 53 // as many as a float64 can tell apart
	return float64(hash.Sum64()%steps)/steps*100 >= *z.Enforce
}
