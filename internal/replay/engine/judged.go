package engine

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// decides reports whether an option says which requests a zone counts together, and by which limit. A
// zone is not judged by a request that lacks what such an option looks at: what the zone would decide
// instead says nothing, and it would keep the request from other zones.
func (u *use) decides() bool {
	return slices.Contains([]string{"key", "plan", "match"}, u.option) || u.ofBody()
}

// ofBody reports whether it is a field of the body, whatever the option.
func (u *use) ofBody() bool {
	return strings.HasPrefix(u.name, placeholder.JSONPrefix)
}

// judges has, by handler and zone, what the deciding options look at.
type judges [][][]use

func newJudges(c *Config, n *needs) judges {
	all := make(judges, len(c.Handlers))
	for i, h := range c.Handlers {
		for _, z := range h.Zones {
			all[i] = append(all[i], slices.DeleteFunc(slices.Clone(n.uses), func(u use) bool {
				return u.zone != z.Name || !u.decides() || u.part == responseHeader
			}))
		}
	}
	return all
}

// lacking returns the first of some parts that the log does not have of a request; nil if it has all.
func lacking(uses []use, f *exchange) (missing *use, redacted bool) {
	for i := range uses {
		u, field := &uses[i], uses[i].name
		switch u.part {
		case cookie:
			field = "Cookie"
		case other:
			return u, false
		}
		if !f.source.reader.Format().Header.Has(field) {
			return u, false
		}
		if slices.Contains(f.record.Header[field], logs.Redacted) {
			return u, true
		}
	}
	return nil, false
}

// notJudged returns which zones of a handler are not judged by a request.
func (v *visitor) notJudged(nth int) (zones zoneSet) {
	for i, uses := range v.judges[nth] {
		if len(uses) > 0 && i < maxSet {
			if u, _ := lacking(uses, v.exchange); u != nil {
				zones |= 1 << i
			}
		}
	}
	return zones
}

// countNotJudged counts a request in the zones that it meets and that are not judged by it.
func (v *visitor) countNotJudged(nth int, zones zoneSet, r *http.Request) {
	for i, z := range v.config.Handlers[nth].Zones {
		if !zones.has(i) {
			continue
		}
		u, redacted := lacking(v.judges[nth][i], v.exchange)
		if u.option != "match" || u.ofBody() {
			if met, err := z.MayMeet(r); err != nil || !met {
				continue
			}
		}
		t := v.tallies.byHandler[nth][i]
		if t.notJudged++; t.why == "" {
			t.why = u.what() + ", which its " + u.option + " needs, is not in the log"
			if redacted {
				t.why = u.what() + ", which its " + u.option + " needs, is redacted in the log"
			}
		}
	}
}

// zoneSet has zones of a handler by their index.
type zoneSet uint64

const maxSet = 64

func (s zoneSet) has(i int) bool { return i < maxSet && s&(1<<i) != 0 }

// partOf is a handler without some of its zones.
type partOf struct {
	handler int
	without zoneSet
}

// limiter returns the limiter of a handler, without some of its zones.
func (w *world) limiter(handler int, without zoneSet) *limiter.Limiter {
	if without == 0 {
		return w.limiters[handler]
	}
	of := partOf{handler, without}
	if l := w.parts[of]; l != nil {
		return l
	}
	if w.parts == nil {
		w.parts = make(map[partOf]*limiter.Limiter)
	}
	config := w.limiters[handler].Config
	config.Zones = slices.DeleteFunc(slices.Clone(config.Zones), func(z *zone.Zone) bool { return without.has(z.Index) })
	w.parts[of] = limiter.New(config)
	return w.parts[of]
}
