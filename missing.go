package caddyratelimit

import (
	"errors"
	"fmt"
)

// What missing_key can be.
const (
	missingShare  = "share"
	missingSkip   = "skip"
	missingReject = "reject"
)

var errNoKey = errors.New("the request has no key")

func (z *Zone) checkMissingKey() error {
	switch z.MissingKey {
	case "":
		return nil
	case missingShare, missingSkip, missingReject:
	default:
		return fmt.Errorf("missing_key must be share, skip or reject, got %q", z.MissingKey)
	}
	if !z.live.key.Varies() {
		return fmt.Errorf("missing_key %s needs a key with a placeholder, got key %q", z.MissingKey, z.Key)
	}
	return nil
}
