package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func getCommand(cmd *cobra.Command) {
	cmd.Flags().Bool(fleetFlag, false, "Count the recent requests of all instances that share the store, which takes some seconds")
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
	k := keyView{Key: new(adminapi.Key)}
	if done, err := c.ask(zonePath(zone, "/key"), query, k.Key); done || err != nil {
		return k.Key, err
	}
	c.details(k.about(c.counter()))
	fmt.Fprintln(c.out)
	c.table(without("ZONE", without("KEY", append([][]string{slices.Clone(stateHeader)}, k.rows()...))))
	if len(k.Plans) > 0 {
		c.printPlans(k)
	}
	c.printReasons([]keyView{k})
	return k.Key, nil
}

// about describes a key, but for the use of its limits. The counts are those of the counter.
func (k keyView) about(counter string) (rows [][]string) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("zone", shell.Word(k.Zone))
	add("key", shell.ShowKey(k.KeyText))
	add("limit", k.Limit+inParentheses(k.Rollout))
	if len(k.Plans) == 0 {
		add("assumed", k.Assumed)
	}
	if len(k.Plans) == 0 && k.ResetAfter > 0 && !k.Slots { // slots come back when requests end
		add("all in", formatSeconds(k.ResetAfter))
	}
	if r := k.Refusals; r != nil {
		add("refusals", fmt.Sprintf("%d so far; %d in %s lead to a ban", r.Count, r.Of, formatSeconds(r.Within)))
	}
	if k.Override != nil {
		add("override", describeOverride(k.Override))
	}
	if l := k.Lately; l != nil {
		dryRun := ""
		if l.DryRun > 0 {
			dryRun = fmt.Sprintf(", %d would have been refused", l.DryRun)
		}
		add("lately", fmt.Sprintf("%s, %d refused%s (counted by %s since %s)",
			plural(int64(l.Requests), "request"), l.Refused, dryRun, counter, l.Since.Local().Format(time.TimeOnly)))
		add("last plan", showPlan(l.Plan))
	}
	return rows
}

// printPlans says which plan a request has, and under which ones an override does not hold.
func (c *instance) printPlans(k keyView) {
	rest := "the default"
	if k.NoPlan != 0 {
		rest = "status " + strconv.Itoa(k.NoPlan)
	}
	fmt.Fprintf(c.out, "\nThe plan of a request is %s; requests with none of these plans get %s.\n", k.PlanFrom, rest)
	var elsewhere []string
	for _, plan := range k.Plans {
		if plan.Elsewhere {
			elsewhere = append(elsewhere, shell.Word(plan.Plan))
		}
	}
	if elsewhere != nil {
		fmt.Fprintln(c.out)
		c.say("The override does not hold under %s, because its algorithm is another one. For a limit there, name the algorithm of that plan, as in 'set %s <key> <algorithm> 500/1m'.",
			enumerate("plan", elsewhere), shell.Word(k.Zone))
	}
}

// errNoAnswer is the error of a look-up that no zone has an answer to.
var errNoAnswer = errors.New("no zone has an answer for this key")

// find prints a key in all zones, and why zones refuse it.
func (c *instance) find(query url.Values) error {
	var found []keyView
	text, err := c.fetch(http.MethodGet, "key", query, nil, &found)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(v keyView) bool { return v.Error == "" }) {
		err = errNoAnswer
	}
	if c.json {
		_, failed := c.out.Write(text)
		return errors.Join(failed, err)
	}
	found = slices.DeleteFunc(found, func(v keyView) bool { return v.Key == nil }) // of another version
	slices.SortStableFunc(found, func(a, b keyView) int { return strings.Compare(a.Zone, b.Zone) })
	for i := range found {
		found[i].named = slices.ContainsFunc(found, func(other keyView) bool {
			return other.Zone == found[i].Zone && other.Error == "" &&
				shell.ShowKey(other.KeyText) != shell.ShowKey(found[i].KeyText)
		})
	}
	counted := slices.DeleteFunc(slices.Clone(found), func(v keyView) bool { return !v.isCounted() })
	if len(counted) == 0 {
		counted = found
	}
	rows := [][]string{stateHeader}
	for _, v := range counted {
		rows = append(rows, v.rows()...)
	}
	c.table(rows)
	c.printSilent(found, counted)
	c.printReasons(slices.DeleteFunc(found, func(v keyView) bool { return v.Outcome == "" || !v.worthReason() }))
	return err
}

// printSilent says why zones have no answer, or are not in the table. Each text is printed once with the zones that it is about,
// such as those of one store.
func (c *instance) printSilent(found, shown []keyView) {
	var texts []string
	zones := make(map[string][]string)
	for _, v := range found {
		text := cmp.Or(v.Error, v.Doubt)
		if text == "" && !slices.ContainsFunc(shown, func(other keyView) bool { return other.Zone == v.Zone }) {
			text = "not counted lately"
		}
		if text != "" && zones[text] == nil {
			texts = append(texts, text)
		}
		if name := shell.Word(v.Zone); !slices.Contains(zones[text], name) {
			zones[text] = append(zones[text], name)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(c.out, "\n%s: %s.\n", enumerate("Zone", zones[text]), text)
	}
}

// isCounted reports whether the zone has counted the key, does something else than allow it, or cannot say.
func (k keyView) isCounted() bool {
	if k.Lately != nil || k.Override != nil || k.Refusals != nil && k.Refusals.Count > 0 {
		return true
	}
	return slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
		isOfAny := k.isUnlimited() || k.Outcome == "" // without an answer, the reason below the table names the zone
		return !isOfAny && (k.Used > 0 || k.Outcome != outcome.Names[outcome.Allowed])
	})
}

// worthReason reports whether to say more about the key, if the zone was not named.
func (k keyView) worthReason() bool {
	return k.BlockedAddress != "" || slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
		return k.Refused || len(k.Commands) > 0 || k.Outcome == outcome.Names[outcome.DryRun]
	})
}
