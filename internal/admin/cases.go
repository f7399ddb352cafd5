package admin

import (
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/cases/engine"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// RunCases carries out the cases of some files on a config, which does not run. It is for the command line, which
// asks no running Caddy for this.
func (AdminAPI) RunCases(config []byte, files []*cases.File, o *cases.Options) ([]cases.Result, error) {
	e, release, err := casesEngine(config)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, f := range files {
		if err := e.Check(f); err != nil {
			return nil, err
		}
	}
	var results []cases.Result
	for _, f := range files {
		for _, c := range f.Cases {
			if o.Run != nil && !o.Run(c.Name) {
				continue
			}
			r := e.Run(f, c)
			if o.Told != nil {
				o.Told(r)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// casesEngine returns what carries out cases on a config. The caller must release it.
func casesEngine(config []byte) (e *engine.Engine, release func(), err error) {
	app, handlers, release, err := provisionHandlers(config)
	if err != nil {
		return nil, nil, err
	}
	c := &engine.Config{App: app, Shared: sharesStore(config), Override: overrideByText, Describe: func(r *store.Rule) string { return describeLimit(r, r.Limit(), true) }}
	for _, h := range handlers.All() {
		c.Handlers = append(c.Handlers, engine.Handler{
			Module: h.Module, Zones: h.Zones, Status: h.Status, Instances: h.Instances, Respond: h.Respond, Warnings: h.Warnings,
		})
	}
	if e, err = engine.New(c); err != nil {
		release()
		return nil, nil, err
	}
	return e, release, nil
}

// overrideByText returns the override that a text asks for.
func overrideByText(z *zone.Zone, text string) (*store.Rule, store.Override, error) {
	var asked overrideRequest
	if plan, ok := strings.CutPrefix(text, "plan "); ok {
		asked.Plan = plan
	} else if asked.Exempt = text == "exempt"; !asked.Exempt {
		asked.Limit = new(requestedLimit)
		asked.Limit.err = asked.Limit.parse(text)
	}
	return (&runningZone{Zone: z}).overrideOf(&asked)
}

// sharesStore reports whether a rate limit handler in a config has a store that is not memory.
func sharesStore(config []byte) (shares bool) {
	eachStore(config, func(store any) {
		s, ok := store.(map[string]any)
		shares = shares || ok && s["backend"] != "memory"
	})
	return shares
}

// TryChanges changes a config a little, one change at a time, and finds out whether a case notices. All cases must
// hold without a change.
func (AdminAPI) TryChanges(config []byte, files []*cases.File, o *cases.Options) (tried []cases.Change, err error) {
	variants, err := cases.Variants(config)
	if err != nil {
		return nil, err
	}
	if err := cases.CheckAccepts(files, variants); err != nil {
		return nil, err
	}
	for _, variant := range variants {
		e, release, err := casesEngine(variant.Config)
		if err != nil {
			continue // nobody can make this change by mistake
		}
		c := cases.Change{Change: variant.Change, FoundBy: firstFailure(e, files, o)}
		release()
		for _, f := range files {
			for _, a := range f.Accepts {
				if a.Change == variant.Change {
					c.Accepted = a.Reason
				}
			}
		}
		if o.Tried != nil {
			o.Tried(c)
		}
		tried = append(tried, c)
	}
	return tried, nil
}

// firstFailure returns the name of the first case that fails.
func firstFailure(e *engine.Engine, files []*cases.File, o *cases.Options) string {
	for _, f := range files {
		for _, c := range f.Cases {
			if (o.Run == nil || o.Run(c.Name)) && e.Fails(f, c) {
				return c.Name
			}
		}
	}
	return ""
}
