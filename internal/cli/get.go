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

func getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get [<zone>] [<key>...]",
		Short: "Shows what a key has used, and why it is refused",
		Long: `
Shows what a key of a zone has used, whether it is refused, why and until when, and
which command lets it through. Without a zone it looks up the key in all of them; a
single argument that is not the name of a zone is a key. This charges nothing.

If a request costs more than 1, these numbers are costs, not requests.
` + keyHelp,
		Example:           "  caddy rate-limit get 203.0.113.7\n  caddy rate-limit get clients 203.0.113.7",
		ValidArgsFunction: completeZones,
		Args:              needsKey,
	}
	cmd.Flags().Bool(fleetFlag, false, "Count the recent requests of all instances that share the store, which takes some seconds")
	query := keyFlags(cmd)
	plan := cmd.Flags().String("plan", "", "The plan whose limit to show, if not that of requests without a plan")
	_ = cmd.RegisterFlagCompletionFunc("plan", completePlans)
	cost := cmd.Flags().Int64("cost", 0, "The cost of the request, if not that of the zone")
	cmd.RunE = onFleet(func(f *fleet, args []string) error {
		q, err := query(args[min(1, len(args)):])
		if err != nil {
			return err
		}
		if *plan != "" {
			q.Set("plan", *plan)
		}
		if cmd.Flags().Changed("cost") {
			q.Set("cost", strconv.FormatInt(*cost, 10))
		}
		if len(args) == 0 {
			return f.find(q)
		}
		if isKeyAlone := len(args) == 1 && *plan == "" && q.Get("key_base64") == ""; isKeyAlone && f.hasNoZone(args[0]) {
			q.Set("key", args[0])
			return f.find(q)
		}
		return f.showKey(fetchAll[adminapi.Key](f, zonePath(args[0], "/key"), q))
	})
	return cmd
}

// hasNoZone reports whether the instance has no zone of this name. It asks for the zones, because Caddy logs an error for
// a zone that does not exist.
func (f *fleet) hasNoZone(name string) bool {
	names, err := f.asked.zoneNames()
	return err == nil && !slices.Contains(names, name)
}

// showKey prints a key of a zone.
func (f *fleet) showKey(answers []answer[adminapi.Key]) error {
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	for _, a := range good[1:] {
		addLately(&good[0].value, &a.value)
	}
	k := keyView{Key: &good[0].value}
	rows := [][]string{{"zone", shell.Word(k.Zone)}, {"key", shell.ShowKey(k.KeyText)}, {"limit", k.limit()}}
	if len(k.Plans) == 0 {
		rows = append(rows, k.details()...)
	}
	if err := f.details(append(rows, k.bansAndOverrides(f.counter(len(good)))...)); err != nil {
		return err
	}
	if len(k.Plans) > 0 {
		fmt.Fprintln(f.out)
		if err := f.states([]keyView{k}, false); err != nil {
			return err
		}
		fmt.Fprintln(f.out, "\n"+k.whichPlan())
		if plans := k.plansWithoutOverride(); len(plans) > 0 {
			fmt.Fprintln(f.out)
			f.say("The override does not hold under %s, because its algorithm is another one. For a limit there, name the algorithm of that plan, as in 'set %s <key> <algorithm> 500/1m'.",
				enumerate("plan", plans), shell.Word(k.Zone))
		}
	}
	f.printReasons([]keyView{k})
	return err
}

// addLately adds the recent counts of a key on another instance.
func addLately(to, key *adminapi.Key) {
	if to.Lately == nil || key.Lately == nil {
		to.Lately = cmp.Or(to.Lately, key.Lately)
		return
	}
	sum := *to.Lately
	if key.Lately.Since.Before(sum.Since) {
		sum.Since = key.Lately.Since
	}
	sum.Plan = cmp.Or(sum.Plan, key.Lately.Plan)
	sum.Requests += key.Lately.Requests
	sum.Refused += key.Lately.Refused
	sum.DryRun += key.Lately.DryRun
	to.Lately = &sum
}

// errNoAnswer is the error of a look-up that no zone has an answer to.
var errNoAnswer = errors.New("no zone has an answer for this key")

// foundKey is a key in a zone, or the reason why the zone has no answer.
type foundKey struct {
	adminapi.Key
	Error string `json:"error"`
}

// find prints a key in all zones, and why zones refuse it.
func (f *fleet) find(query url.Values) error {
	var found []foundKey
	text, err := f.asked.fetch(http.MethodGet, "key", query, nil, &found)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(k foundKey) bool { return k.Error == "" }) {
		err = errNoAnswer
	}
	if f.json {
		_, failed := f.out.Write(text)
		return errors.Join(failed, err)
	}
	slices.SortStableFunc(found, func(a, b foundKey) int { return strings.Compare(a.Zone, b.Zone) })
	views := make([]keyView, len(found))
	for i := range found {
		views[i] = keyView{Key: &found[i].Key}
		views[i].named = slices.ContainsFunc(found, func(other foundKey) bool {
			return other.Zone == found[i].Zone && other.Error == "" &&
				shell.ShowKey(other.KeyText) != shell.ShowKey(found[i].KeyText)
		})
	}
	counted, others := countedViews(views)
	if err := f.states(counted, true); err != nil {
		return err
	}
	f.printSilent(found)
	if len(others) > 0 {
		fmt.Fprintln(f.out)
		f.say("Not counted lately by %s.", strings.Join(others, ", "))
	}
	f.printDoubts(found)
	f.printReasons(slices.DeleteFunc(views, func(v keyView) bool { return v.Outcome == "" || !v.worthReason() }))
	return err
}

// countedViews returns the views of a key in zones that know something of it, and the names of the other zones. If no
// zone does, all are worth showing.
func countedViews(views []keyView) (counted []keyView, others []string) {
	for _, v := range views {
		switch {
		case v.isCounted():
			counted = append(counted, v)
		case v.Doubt == "" && v.Outcome != "" && !slices.Contains(others, shell.Word(v.Zone)): // a doubt names its zone
			others = append(others, shell.Word(v.Zone))
		}
	}
	if len(counted) == 0 {
		return views, nil
	}
	of := func(name string) bool {
		return slices.ContainsFunc(counted, func(v keyView) bool { return shell.Word(v.Zone) == name })
	}
	return counted, slices.DeleteFunc(others, of)
}

// isCounted reports whether the zone has counted the key, does something else than allow it, or cannot say.
func (k keyView) isCounted() bool {
	if k.Lately != nil || k.Override != nil || k.Refusals != nil && k.Refusals.Count > 0 {
		return true
	}
	return slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
		switch {
		case len(k.Plans) == 1 && k.Plans[0].Unlimited: // of any key
			return false
		case k.Outcome == "": // no answer: the reason is below the table, with the name of the zone
			return false
		}
		return k.Used > 0 || k.Outcome != outcome.Names[outcome.Allowed]
	})
}

// printSilent prints why zones have no answer. Zones of one store have one reason, which is printed once.
func (f *fleet) printSilent(found []foundKey) {
	f.printOnce(found, func(k *foundKey) string { return k.Error })
}

// printDoubts prints why the text is probably no key of some zones, once for those with the same key.
func (f *fleet) printDoubts(found []foundKey) {
	f.printOnce(found, func(k *foundKey) string { return k.Doubt })
}

// printOnce prints what is to say of zones, and each text once with the zones that it is about.
func (f *fleet) printOnce(found []foundKey, what func(*foundKey) string) {
	var texts []string
	zones := make(map[string][]string)
	for i := range found {
		text, name := what(&found[i]), shell.Word(found[i].Zone)
		if text == "" {
			continue
		}
		if zones[text] == nil {
			texts = append(texts, text)
		}
		if !slices.Contains(zones[text], name) {
			zones[text] = append(zones[text], name)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(f.out, "\n%s: %s.\n", enumerate("Zone", zones[text]), text)
	}
}

// states prints a table of keys: a line for each plan of each key.
func (f *fleet) states(views []keyView, withZones bool) error {
	withPlans := slices.ContainsFunc(views, func(k keyView) bool { return len(k.Plans) > 0 })
	rows := [][]string{{"ZONE", planColumn, "STATE", "USED", "LEFT", "MORE IN", keyColumn}}
	for _, view := range views {
		if view.Outcome == "" {
			rows = append(rows, []string{shell.Word(view.Zone), "-", "?", "-", "-", "-", "-"})
			continue
		}
		for _, k := range view.byPlan() {
			rows = append(rows, slices.Concat([]string{shell.Word(k.Zone), k.planName()}, k.numbers(), []string{shell.ShowKey(k.KeyText)}))
		}
	}
	return f.table(only(map[string]bool{"ZONE": withZones, planColumn: withPlans, keyColumn: withZones}, rows))
}

// limit returns the limit of the zone.
func (k keyView) limit() string { return k.Limit + inParentheses(k.Rollout) }

// details returns the names and values of a key under one limit.
func (k keyView) details() (rows [][]string) {
	if k.Plan != "" {
		rows = append(rows, []string{"plan", shell.Word(k.Plan)})
	}
	if k.Assumed != "" {
		rows = append(rows, []string{"assumed", k.Assumed})
	}
	rows = append(rows,
		[]string{"state", words(k.Outcome)},
		[]string{"used", k.used()},
		[]string{"left", k.remaining()})
	if k.Slots { // they come back when requests end
		return rows
	}
	if k.NextAfter > 0 {
		rows = append(rows, []string{"more in", formatSeconds(k.NextAfter)})
	}
	if k.ResetAfter > 0 {
		rows = append(rows, []string{"all in", formatSeconds(k.ResetAfter)})
	}
	return rows
}

// bansAndOverrides returns what is known of a key whatever its limit is. The counts are those of the counter.
func (k keyView) bansAndOverrides(counter string) (rows [][]string) {
	if r := k.Refusals; r != nil {
		rows = append(rows, []string{"refusals", fmt.Sprintf("%d so far; %d in %s lead to a ban", r.Count, r.Of, formatSeconds(r.Within))})
	}
	if k.Override != nil {
		rows = append(rows, []string{"override", describeOverride(k.Override)})
	}
	if k.Lately == nil {
		return rows
	}
	dryRun := ""
	if n := k.Lately.DryRun; n > 0 {
		dryRun = fmt.Sprintf(", %d would have been refused", n)
	}
	rows = append(rows, []string{"lately", fmt.Sprintf("%s, %d refused%s (counted by %s since %s)",
		plural(int64(k.Lately.Requests), "request"), k.Lately.Refused, dryRun, counter, k.Lately.Since.Local().Format(time.TimeOnly))})
	if k.Lately.Plan != "" {
		rows = append(rows, []string{"last plan", shell.Word(k.Lately.Plan)})
	}
	return rows
}
