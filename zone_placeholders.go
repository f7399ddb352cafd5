package caddyratelimit

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/routes"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// use is a placeholder that an option uses.
type use struct {
	option, name string
	consequence  string // of a placeholder that nothing sets
	inKey        bool   // then such a placeholder is an error
}

// placeholders are the placeholders that the zone uses, each once.
func (z *Zone) placeholders() (uses []use) {
	add := func(u use) {
		if u.name != "" && !slices.ContainsFunc(uses, func(other use) bool { return other.name == u.name }) {
			uses = append(uses, u)
		}
	}
	for _, p := range z.live.Template.Parts {
		add(use{fmt.Sprintf("key %q", z.Key), p.Placeholder, z.ifEmpty(), true})
	}
	if z.live.PlanTemplate != nil {
		for _, p := range z.live.PlanTemplate.Parts {
			add(use{fmt.Sprintf("plan %q", z.Plan.Of), p.Placeholder, "no request has a plan of its own", false})
		}
	}
	for _, l := range z.live.Limits() {
		for _, p := range l.Placeholders() {
			add(use{p.Option, p.Name, invalidOr(p.Fallback), false})
		}
	}
	if z.Cost != nil {
		add(use{"cost", z.Cost.From, invalidOr(z.Cost.Fallback), false})
	}
	return uses
}

// ifEmpty says what an empty placeholder of the key means.
func (z *Zone) ifEmpty() string {
	switch {
	case z.live.Template.NumPlaceholders() > 1:
		return "the placeholder is always empty"
	case z.MissingKey == zone.MissingSkip:
		return "the zone limits no request"
	case z.MissingKey == zone.MissingReject:
		return "all requests are refused"
	}
	return "all clients share one limit"
}

func invalidOr(fallback bool) string {
	if fallback {
		return "the fallback always holds"
	}
	return "all requests are refused"
}

// checkUse checks that something in the config sets a placeholder.
func (z *Zone) checkUse(u use, around *routes.Routes, log *zap.Logger) error {
	if !around.Known { // outside a server
		if known, _ := placeholder.Check(u.name, ""); !known && u.inKey {
			log.Warn(u.option+" holds a placeholder that is not Caddy's own; if nothing sets it, "+u.consequence, zap.String("placeholder", "{"+u.name+"}"))
		}
		return nil
	}
	if z.AllowUnknownPlaceholders || around.Sets(u.name) || placeholder.IsBuiltIn(u.name) {
		return nil
	}
	shown := zap.String("placeholder", "{"+u.name+"}")
	if strings.HasPrefix(u.name, "http.auth.") {
		switch {
		case strings.HasPrefix(u.name, "http.auth.candidate.") && len(around.Foreign) == 0:
			log.Warn(u.option+": only users who were not let in have this placeholder, so outside of error routes "+u.consequence+"; "+
				writeBraces.With(placeholder.Written("http.auth.user."+strings.TrimPrefix(u.name, "http.auth.candidate."))).String(), shown)
		case len(around.Foreign) > 0 || around.AuthenticatesBefore(z.live.Name):
		case around.Authenticates:
			log.Warn(u.option+": authentication comes after rate_limit, so "+u.consequence+"; "+limitUsers.With().String(), shown)
		default:
			log.Warn(u.option+": nothing in this config authenticates users, so "+u.consequence, shown)
		}
		return nil
	}
	hint := ""
	if similar := placeholder.Similar(u.name, around.All()); similar != "" {
		hint = "; " + writeBraces.With(placeholder.Written(similar)).String()
	}
	if len(around.Foreign) > 0 {
		log.Warn(u.option+": no module of Caddy sets this placeholder; if none of these modules does, "+u.consequence+hint,
			shown, zap.Strings("modules", slices.Compact(slices.Sorted(slices.Values(around.Foreign)))))
		return nil
	}
	if !u.inKey {
		log.Warn(u.option+": nothing in this config sets this placeholder, so "+u.consequence+hint, shown)
		return nil
	}
	return fmt.Errorf("%s: nothing in this config sets {%s}, so %s%s (if something does, set allow_unknown_placeholders)", u.option, u.name, u.consequence, hint)
}
