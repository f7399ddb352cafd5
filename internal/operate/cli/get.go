package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

func getCommand(cmd *cobra.Command) {
	query := keyFlags(cmd)
	asks(cmd, func(c *instance, args []string) error {
		q, err := query(args[min(1, len(args)):])
		switch encoded := q.Has("key_base64"); {
		case err != nil:
			return err
		case len(args) == 0 && !encoded:
			return errors.New("the key is missing: write 'caddy rate-limit get 203.0.113.7' for a key in all zones, " +
				"or 'caddy rate-limit get clients 203.0.113.7' for a key of one zone")
		case len(args) == 0:
			return c.find(q)
		case len(args) == 1 && !encoded && c.hasNoZone(args[0]):
			return c.find(url.Values{"key": args})
		}
		_, err = c.key(args[0], q)
		return err
	})
}

// hasNoZone reports whether the instance has no zone of this name. It asks for the zones, because Caddy logs an error for
// a zone that does not exist.
func (c *instance) hasNoZone(name string) bool {
	zones, err := c.allZones()
	return err == nil && !slices.ContainsFunc(zones, func(z adminapi.Zone) bool { return z.Name == name })
}

// key prints a key of a zone.
func (c *instance) key(zone string, query url.Values) (*adminapi.Key, error) {
	k := new(keyView)
	if done, err := c.ask(zonePath(zone, "/key"), query, k); done || err != nil {
		return &k.Key, err
	}
	c.printStates(*k)
	if rows := k.about(); len(rows) > 0 {
		fmt.Fprintln(c.out)
		c.details(rows)
	}
	c.printReasons(*k)
	return &k.Key, nil
}

// about describes a key, but for the use of its limits.
func (k *keyView) about() (rows [][]string) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("limit", k.Limit+inParentheses(k.Rollout))
	if len(k.Plans) == 0 {
		add("assumed", k.Assumed)
	} else if k.NoPlan != 0 {
		add("plan", fmt.Sprintf("%s, else status %d", k.PlanFrom, k.NoPlan))
	} else {
		add("plan", k.PlanFrom+", else the default")
	}
	if r := k.Refusals; r != nil {
		add("refusals", fmt.Sprintf("%d so far; %d in %s lead to a ban", r.Count, r.Of, duration.Seconds(r.Within)))
	}
	if k.Override != nil {
		add("override", describeOverride(k.Override))
		for _, plan := range k.Plans {
			if plan.Override != nil && plan.Override.Elsewhere {
				rows[len(rows)-1][1] += ", not under plan " + shell.Word(plan.Plan)
			}
		}
	}
	if l := k.Lately; l != nil {
		refused := "refused"
		if l.DryRun {
			refused = "would have been refused"
		}
		add("lately", fmt.Sprintf("%s, %d %s (counted by this instance since %s)",
			say.Plural(int64(l.Requests), "request"), l.Refused, refused, l.Since.Local().Format(time.TimeOnly)))
		add("last plan", showPlan(l.Plan))
	}
	return rows
}

// errNoAnswer is the error of a look-up that no zone has an answer to.
var errNoAnswer = errors.New("no zone has an answer for this key")

// find prints a key in the zones that have counted it, or else in all, and why zones refuse it.
func (c *instance) find(query url.Values) error {
	var found []keyView
	text, err := c.fetch(http.MethodGet, "key", query, nil, &found)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(k keyView) bool { return k.Error == "" }) {
		err = errNoAnswer
	}
	if c.json {
		_, failed := c.out.Write(text)
		return errors.Join(failed, err)
	}
	shown := slices.DeleteFunc(slices.Clone(found), func(k keyView) bool { return !k.isCounted() })
	if len(shown) == 0 {
		shown = found
	}
	c.printStates(shown...)
	c.printSilent(found)
	c.printReasons(shown...)
	return err
}

// printSilent says why zones have no answer, or a doubtful one. Each text is printed once with the zones that it is about, such as
// those of one store.
func (c *instance) printSilent(found []keyView) {
	zones := make(map[string][]string)
	for _, k := range found {
		if k.Error != "" {
			zones[k.Error] = append(zones[k.Error], shell.Word(k.Zone))
		}
	}
	for _, text := range slices.Sorted(maps.Keys(zones)) {
		fmt.Fprintf(c.out, "\n%s: %s.\n", enumerate("Zone", slices.Compact(zones[text])), text)
	}
}

// isCounted reports whether the zone has counted the key, or does something else than allow it.
func (k *keyView) isCounted() bool {
	return k.Lately != nil || k.Override != nil || k.Refusals != nil && k.Refusals.Count > 0 ||
		slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
			return !k.Unlimited && k.Outcome != "" && (k.Used > 0 || k.Outcome != outcome.Names[outcome.Allowed])
		})
}
