package trial

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// Defined is a zone as the handlers of a config define it.
type Defined struct {
	*zone.Zone // of any handler: all define the zone alike
	Store      *pool.Ref
	Local      *pool.Ref    // decides while the store does not; nil if no zone may need it
	Uses       []*zone.Zone // by handler; sorted, because Caddy loads servers in another order each time
	LogKey     bool         // of some handler
	ByDefault  bool         // no store is given for it
	Warnings   []string     // while it was loaded
}

// Zones returns the zones of some handlers by name.
func Zones(handlers []*Handler) map[string]*Defined {
	all := make(map[string]*Defined)
	for _, h := range handlers {
		for _, use := range h.Zones {
			z := all[use.Name]
			if z == nil {
				z = &Defined{Zone: use, Store: h.Store, ByDefault: h.StoreByDefault}
				all[use.Name] = z
			}
			z.Uses, z.Warnings = append(z.Uses, use), append(z.Warnings, h.Warnings[use.Name]...)
			z.LogKey, z.Local = z.LogKey || h.LogKey, cmp.Or(h.Local, z.Local)
		}
	}
	for _, z := range all {
		slices.SortStableFunc(z.Uses, func(a, b *zone.Zone) int {
			return cmp.Or(bytes.Compare(a.JSON, b.JSON), cmp.Compare(a.OnStoreError, b.OnStoreError))
		})
		slices.Sort(z.Warnings)
		z.Warnings = slices.Compact(z.Warnings)
	}
	return all
}
