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
	case share > 0 && share < 100 && !z.live.Template.Varies():
		log.Warn("enforce chooses among keys, and this zone has just one", zap.String("zone", z.live.Name))
	}
	z.live.Enforced = xxhash.Sum64String(z.live.Name)
	return nil
}
