// Package compare says in words what differs between the zones of two configs: for the audit of reloads, and for
// people who review a change.
package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Zone is a zone of a config, in each handler that has it.
type Zone struct {
	Uses     []*zone.Zone
	Warnings []string // while it was loaded
}

// ZonesOf returns the zones of some handlers.
func ZonesOf(handlers []*trial.Handler) map[string]Zone {
	all := make(map[string]Zone)
	for _, h := range handlers {
		for _, use := range h.Zones {
			z := all[use.Name]
			z.Uses = append(z.Uses, use)
			for _, text := range h.Warnings[use.Name] {
				if !slices.Contains(z.Warnings, text) {
					z.Warnings = append(z.Warnings, text)
				}
			}
			all[use.Name] = z
		}
	}
	return all
}

// Zones returns the zones that differ, sorted by name.
func Zones(before, after map[string]Zone) []adminapi.ZoneDiff {
	var all []adminapi.ZoneDiff
	for _, name := range union(before, after) {
		was, old := before[name]
		is, now := after[name]
		was.Uses, is.Uses = sorted(was.Uses), sorted(is.Uses)
		switch {
		case !now:
			all = append(all, adminapi.ZoneDiff{Zone: name, Kind: adminapi.ZoneGone, Was: describe(was.Uses[0]), Counts: adminapi.CountsAnew, Weaker: refuses(was.Uses)})
		case !old:
			all = append(all, adminapi.ZoneDiff{Zone: name, Kind: adminapi.ZoneNew, Is: describe(is.Uses[0]), Warnings: is.Warnings, Stricter: refuses(is.Uses)})
		default:
			if d := compare(was, is); len(d.Changes)+len(d.Warnings) > 0 {
				d.Zone = name
				all = append(all, d)
			}
		}
	}
	return all
}

// describe returns the limit of a zone, how far it is enforced, and its key.
func describe(z *zone.Zone) string {
	text := z.Description
	if rollout := z.Rollout(); rollout != "" {
		text += " (" + rollout + ")"
	}
	if z.Key != "" {
		text += " by " + z.Template.Form()
	}
	return text
}

// compare compares the definitions of a zone.
func compare(was, is Zone) adminapi.ZoneDiff {
	d := adminapi.ZoneDiff{Kind: adminapi.ZoneChanged, Was: describe(was.Uses[0]), Is: describe(is.Uses[0])}
	old, changed := differing(was.Uses, is.Uses)
	for i := range min(len(old), len(changed)) {
		for _, change := range options(old[i], changed[i]) {
			if !slices.Contains(d.Changes, change.OptionDiff) {
				d.Changes = append(d.Changes, change.OptionDiff)
			}
			d.Stricter = d.Stricter || change.stricter
		}
		for _, back := range options(changed[i], old[i]) {
			d.Weaker = d.Weaker || back.stricter
		}
	}
	if a, b := len(was.Uses), len(is.Uses); a != b {
		d.Changes = append(d.Changes, adminapi.OptionDiff{Option: "uses", Was: fmt.Sprint(a), Is: fmt.Sprint(b), Text: fmt.Sprintf("is in %d handlers, was in %d", b, a)})
		d.Stricter, d.Weaker = d.Stricter || b > a, d.Weaker || b < a
	}
	d.Stricter, d.Weaker = d.Stricter && refuses(is.Uses), d.Weaker && refuses(was.Uses)
	for _, text := range is.Warnings {
		if !slices.Contains(was.Warnings, text) {
			d.Warnings = append(d.Warnings, text)
		}
	}
	switch {
	case was.Uses[0].StoreID != is.Uses[0].StoreID: // an ID may have secrets
		d.Changes = append(d.Changes, adminapi.OptionDiff{Option: "store", Text: "another store, or other options of it, so counts may begin again from zero"})
	case len(d.Changes) > 0:
		d.Counts = counts(was.Uses, is.Uses)
	}
	return d
}

// limitOptions are described together, as the limit.
var limitOptions = []string{"algorithm", "max_events", "window", "burst", "refill", "mode", "align", "timezone", "lease"}

// durations are the options whose values are durations.
var durations = []string{"duration", "window", "up_to", "max_wait", "lease", "lend"}

// difference is an option that differs.
type difference struct {
	adminapi.OptionDiff
	stricter bool // it can refuse requests that passed before
}

// options compares the options of two definitions, one by one. The limit is one, and each plan.
func options(was, is *zone.Zone) (all []difference) {
	before, after := fields(was), fields(is)
	for _, name := range union(before, after) {
		a, b := before[name], after[name]
		plan, isPlan := strings.CutPrefix(name, "plan ")
		d := difference{option(name, a, b), stricter(name, a, b)}
		switch {
		case reflect.DeepEqual(a, b):
			continue
		case name == "limit":
			d = changedLimit(name, was.Description, is.Description, was.Policy, is.Policy, sameBut(a, b))
		case isPlan:
			d.Was, d.Is = ofPlan(was, plan), ofPlan(is, plan)
			d.stricter = b == nil || !is.Plans[plan].Unlimited
			switch {
			case a == nil:
				d.Text = name + " is new: " + d.Is
			case b == nil:
				d.Text = name + " is gone, was " + d.Was
			case d.Was != d.Is:
				loose := !d.stricter
				d = changedLimit(name, d.Was, d.Is, was.Plans[plan].Policies.Fixed, is.Plans[plan].Policies.Fixed,
					sameBut(a, b))
				d.stricter = d.stricter && !loose
			}
		}
		all = append(all, d)
	}
	return all
}

// sameBut reports whether two limits differ only in how much they admit.
func sameBut(a, b any) bool {
	was, _ := a.(object)
	is, _ := b.(object)
	for _, option := range union(was, is) {
		howMuch := slices.Contains([]string{"max_events", "window", "burst"}, option)
		if !howMuch && !reflect.DeepEqual(was[option], is[option]) {
			return false
		}
	}
	return true
}

// changedLimit describes a limit that has changed. The policies are nil where limits depend on the request.
func changedLimit(name, was, is string, a, b *zone.QuotaPolicy, alike bool) difference {
	d := difference{adminapi.OptionDiff{Option: name, Was: was, Is: is}, true}
	verb := "changed"
	if alike && a != nil && b != nil && a.Rule.Algorithm().Name() == b.Rule.Algorithm().Name() {
		x, y := a.Rule.Limit(), b.Rule.Limit()
		rate := func(events int64, window time.Duration) float64 { return float64(events) / float64(max(window, 1)) }
		before, now := rate(x.Events, x.Window), rate(y.Events, y.Window)
		switch {
		case x.Calendar != y.Calendar:
		case now <= before && y.Events <= x.Events && a.Quota >= b.Quota:
			verb = "lowered"
		case now >= before && y.Events >= x.Events && a.Quota <= b.Quota:
			verb, d.stricter = "raised", false
		}
	}
	d.Text = fmt.Sprintf("%s %s from %s to %s", name, verb, d.Was, d.Is)
	return d
}

// option describes an option that has changed.
func option(name string, was, is any) adminapi.OptionDiff {
	if slices.Contains(matchers, name) {
		was, is = hidden(was, false), hidden(is, false)
	}
	d := adminapi.OptionDiff{Option: name, Was: text(was), Is: text(is)}
	switch {
	case was == nil:
		d.Text = fmt.Sprintf("%s now %s", name, d.Is)
	case is == nil:
		d.Text = fmt.Sprintf("no %s any longer, was %s", name, d.Was)
	case d.Was == d.Is:
		d.Text = fmt.Sprintf("%s now has other values, which are hidden or too long: %s", name, d.Is)
	default:
		d.Text = fmt.Sprintf("%s now %s, was %s", name, d.Is, d.Was)
	}
	return d
}

// fields returns the options of a definition, with what its handler decides for it: the limit as one option, and each
// plan.
func fields(z *zone.Zone) object {
	all, limit := make(object), make(object)
	d := json.NewDecoder(bytes.NewReader(z.JSON))
	d.UseNumber()
	_ = d.Decode(&all) // cannot fail: it was made from a zone
	spellDurations(all)
	for _, name := range limitOptions {
		if value, has := all[name]; has {
			limit[name] = value
			delete(all, name)
		}
	}
	all["limit"], all["key"], all["on_store_error"] = limit, form(z), z.OnStoreError
	if p, ok := all["plan"].(object); ok {
		all["plan"], all["default plan"] = p["of"], otherwise(z)
		plans, _ := p["plans"].(object)
		for name, plan := range plans {
			all["plan "+name] = plan
		}
	}
	return all
}

// spellDurations writes durations as people do. JSON has their nanoseconds.
func spellDurations(in object) {
	for name, value := range in {
		switch value := value.(type) {
		case object:
			spellDurations(value)
		case json.Number:
			ns, err := value.Int64()
			if err == nil && ns > 0 && slices.Contains(durations, name) {
				in[name] = duration.Format(time.Duration(ns))
			}
		}
	}
}

// form returns the key as a Caddyfile has it.
func form(z *zone.Zone) string {
	if z.Key == "" {
		return "none"
	}
	return z.Template.Form()
}

// ofPlan describes the limit of a plan. It is empty if the zone has no such plan.
func ofPlan(z *zone.Zone, name string) string {
	plan := z.Plans[name]
	switch {
	case plan == nil:
		return ""
	case plan.Unlimited:
		return "unlimited"
	}
	return plan.Limit.Describe()
}

// otherwise says what holds for requests with none of the plans.
func otherwise(z *zone.Zone) string {
	if z.Plan.Default != nil {
		return z.Plan.Default.Full(http.StatusForbidden)
	}
	return "the limit of the zone"
}
