package caddyratelimit

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
)

// reads reports whether the key or the plan has such a part.
func (z *Zone) reads(such func(*key.Part) bool) bool {
	for _, k := range []*key.Template{z.live.Template, z.live.PlanOf} {
		for i := 0; k != nil && i < len(k.Parts); i++ {
			if such(&k.Parts[i]) {
				return true
			}
		}
	}
	return false
}

func (z *Zone) checkRawValues() error {
	if z.RawValues && !z.reads(func(p *key.Part) bool { return key.NormalOf(p.Placeholder) != nil }) {
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
	if !z.reads(func(p *key.Part) bool { return p.Repeats != nil }) {
		return fmt.Errorf("repeated_values %s needs a key or plan with a placeholder of a header field, a query parameter or a cookie, got key %q",
			z.RepeatedValues, z.Key)
	}
	return nil
}
