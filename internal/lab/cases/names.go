package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// check returns an error if the cases of a file name a zone that the config has not, or an outcome that there is not.
// Otherwise skips and a misspelled zone would hold, whatever happens.
func (e *engine) check(f *File) error {
	for _, c := range f.Cases {
		for i := range c.Steps {
			if err := e.checkNames(&c.Steps[i]); err != nil {
				return fmt.Errorf("%w, at %s:%d", err, f.Name, c.Steps[i].Line)
			}
		}
	}
	return nil
}

// checkNames checks the names in a step.
func (e *engine) checkNames(s *Step) error {
	var zones []string
	switch {
	case s.Override != nil:
		zones = append(zones, s.Override.Zone)
	case s.Warning != nil && s.Warning.Zone != "":
		zones = append(zones, s.Warning.Zone)
	case s.Request != nil:
		if by := s.Request.Expect.By; by != "" {
			zones = append(zones, by)
		}
		for _, z := range s.Request.Expect.Zones {
			zones = append(zones, z.Zone)
			if z.Outcome != "" && !slices.Contains(outcome.Names[:], z.Outcome) {
				return fmt.Errorf("there is no outcome %q%s, must be one of %s", z.Outcome, suggest.Hint(z.Outcome, outcome.Names[:]), strings.Join(outcome.Names[:], ", "))
			}
		}
	}
	for _, name := range zones {
		if _, err := e.zone(name); err != nil {
			return err
		}
	}
	return nil
}

// zone returns a zone by its name.
func (e *engine) zone(name string) (*zone.Zone, error) {
	if z := e.byName[name]; z != nil {
		return z, nil
	}
	names := slices.Sorted(maps.Keys(e.byName))
	return nil, fmt.Errorf("the config has no zone %q%s, its zones are %s", name, suggest.Hint(name, names), strings.Join(names, ", "))
}
