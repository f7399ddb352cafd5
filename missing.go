package caddyratelimit

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

func (z *Zone) checkMissingKey() error {
	switch z.MissingKey {
	case "":
		return nil
	case zone.MissingShare, zone.MissingSkip, zone.MissingReject:
	default:
		return fmt.Errorf("missing_key must be share, skip or reject, got %q", z.MissingKey)
	}
	if !z.live.Template.Varies() {
		return fmt.Errorf("missing_key %s needs a key with a placeholder, got key %q", z.MissingKey, z.Key)
	}
	return nil
}
