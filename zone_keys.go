package caddyratelimit

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
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

// reads reports whether the key or the plan has such a part.
func (z *Zone) reads(such func(*key.Part) bool) bool {
	for _, k := range []*key.Template{z.live.Template, z.live.PlanTemplate} {
		for i := 0; k != nil && i < len(k.Parts); i++ {
			if such(&k.Parts[i]) {
				return true
			}
		}
	}
	return false
}

func (z *Zone) checkRawValues() error {
	if z.RawValues && !z.reads(func(p *key.Part) bool { return key.NormalizerOf(p.Placeholder) != nil }) {
		return fmt.Errorf("raw_values needs a key or plan with a placeholder of a host or a path, got key %q", z.Key)
	}
	return nil
}

// What repeated_values can be.
const (
	repeatedReject = "reject"
	repeatedJoin   = "join"
)

func (z *Zone) checkRepeatedValues() error {
	if z.RepeatedValues == "" {
		return nil
	}
	if err := oneOf("repeated_values", &z.RepeatedValues, repeatedReject, repeatedJoin); err != nil {
		return err
	}
	if !z.reads(func(p *key.Part) bool { return p.Repeatable != nil }) {
		return fmt.Errorf("repeated_values %s needs a key or plan with a placeholder of a header field, a query parameter or a cookie, got key %q",
			z.RepeatedValues, z.Key)
	}
	return nil
}

func (z *Zone) provisionKey(_ caddy.Context, log *zap.Logger) (err error) {
	z.live.Template, err = key.New(z.Key, z.IPv4Prefix, z.IPv6Prefix)
	if err != nil {
		return err
	}
	z.live.Template.JoinsRepeated = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		z.live.Template.Normalize()
	}
	if (z.IPv4Prefix != 0 || z.IPv6Prefix != 0) && !z.live.Template.Varies() {
		log.Warn("ipv4_prefix and ipv6_prefix have no effect: the key holds no placeholder", zap.String("zone", z.live.Name))
	}
	for _, unknown := range z.live.Template.Unknown {
		log.Warn("the key holds a placeholder that is not Caddy's own; if nothing sets it, all clients share one limit",
			zap.String("zone", z.live.Name), zap.String("placeholder", "{"+unknown+"}"))
	}
	for _, empty := range z.live.Template.OftenEmpty {
		log.Warn("the key may have the same value for all clients: "+empty.Why,
			zap.String("zone", z.live.Name), zap.String("placeholder", "{"+empty.Name+"}"))
	}
	return nil
}
