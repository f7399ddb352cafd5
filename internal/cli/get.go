package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
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
		ValidArgsFunction: completeKeys,
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

// hasNoZone reports whether no instance that answers has a zone of this name. It asks for the zones, because Caddy
// logs an error for a zone that does not exist.
func (f *fleet) hasNoZone(name string) bool {
	answered := false
	for _, a := range fetchAll[[]adminapi.Zone](f, "zones", nil) {
		answered = answered || a.err == nil
		if slices.ContainsFunc(a.value, func(z adminapi.Zone) bool { return z.Name == name }) {
			return false
		}
	}
	return answered
}

// showKey prints a key of a zone.
func (f *fleet) showKey(answers []answer[adminapi.Key]) error {
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	var found shared[string, adminapi.Key]
	for _, a := range good {
		found.add(timeless(a.value), a.value, a.of, addLately)
	}
	views := f.views(&found, len(good))
	k := views[0]
	for _, other := range found.all[1:] {
		addLately(k.Key, &other.value)
	}
	rows := [][]string{{"zone", shellWord(k.Zone)}, {"key", showKey(k.KeyText)}}
	limits := make(map[string]string) // the instances that have a limit
	for _, v := range views {
		limits[v.limit()] += " " + v.of
	}
	for _, limit := range slices.Sorted(maps.Keys(limits)) {
		if of := limits[limit]; len(limits) > 1 {
			limit += inParentheses(strings.TrimSpace(of))
		}
		rows = append(rows, []string{"limit", limit})
	}
	if len(views) == 1 && len(k.Plans) == 0 {
		rows = append(rows, k.details()...)
	}
	if err := f.details(append(rows, k.bansAndOverrides(f.counter(len(good)))...)); err != nil {
		return err
	}
	if len(views) > 1 || len(k.Plans) > 0 {
		fmt.Fprintln(f.out)
		if err := f.states(views, false); err != nil {
			return err
		}
	}
	if len(k.Plans) > 0 {
		fmt.Fprintln(f.out, "\n"+k.whichPlan())
		if plans := k.plansWithoutOverride(); len(plans) > 0 {
			fmt.Fprintln(f.out)
			f.say("The override does not hold under %s, because its algorithm is another one. For a limit there, name the algorithm of that plan, as in 'set %s <key> <algorithm> 500/1m'.",
				enumerate("plan", plans), shellWord(k.Zone))
		}
	}
	f.printReasons(views, func(keyView) bool { return true })
	return err
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
	answers := fetchAll[[]foundKey](f, "key", query)
	good, err := answered(f, answers)
	hasAnswer := func(a answer[[]foundKey]) bool {
		return slices.ContainsFunc(a.value, func(k foundKey) bool { return k.Error == "" })
	}
	if good != nil && !slices.ContainsFunc(good, hasAnswer) {
		err = errors.Join(err, errNoAnswer)
	}
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	var found shared[string, adminapi.Key]
	var silent shared[[2]string, foundKey]
	for _, a := range good {
		for _, k := range a.value {
			if k.Error != "" {
				silent.add([2]string{k.Zone, k.Error}, k, a.of, func(_, _ *foundKey) {})
			} else {
				found.add(timeless(k.Key), k.Key, a.of, addLately)
			}
		}
	}
	for _, g := range silent.all {
		found.add("\x00"+g.value.Zone+"\x00"+g.value.Error, adminapi.Key{Zone: g.value.Zone}, g.of[0], nil)
		found.all[len(found.all)-1].of = g.of
	}
	slices.SortStableFunc(found.all, func(a, b *agreed[adminapi.Key]) int { return strings.Compare(a.value.Zone, b.value.Zone) })
	views := f.views(&found, len(good))
	for i := range views {
		views[i].named = slices.ContainsFunc(views, func(other keyView) bool {
			return other.Zone == views[i].Zone && other.Outcome != "" && showKey(other.KeyText) != showKey(views[i].KeyText)
		})
	}
	counted, others := countedViews(views)
	if err := f.states(counted, true); err != nil {
		return err
	}
	f.printSilent(silent.all, len(good))
	if len(others) > 0 {
		fmt.Fprintln(f.out)
		f.say("Not counted lately by %s.", strings.Join(others, ", "))
	}
	f.printDoubts(found.all)
	f.printReasons(views, func(v keyView) bool { return v.Outcome != "" && v.worthReason() })
	return err
}

// countedViews returns the views of a key in zones that know something of it, and the names of the other zones. If no
// zone does, all are worth showing.
func countedViews(views []keyView) (counted []keyView, others []string) {
	for _, v := range views {
		switch {
		case v.isCounted():
			counted = append(counted, v)
		case v.Doubt == "" && v.Outcome != "" && !slices.Contains(others, shellWord(v.Zone)): // a doubt names its zone
			others = append(others, shellWord(v.Zone))
		}
	}
	if len(counted) == 0 {
		return views, nil
	}
	of := func(name string) bool {
		return slices.ContainsFunc(counted, func(v keyView) bool { return shellWord(v.Zone) == name })
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
		return k.Used > 0 || k.Lent > 0 || k.Outcome != outcome.Names[outcome.Allowed]
	})
}

// printSilent prints why zones have no answer. Zones of one store have one reason, which is printed once.
func (f *fleet) printSilent(silent []*agreed[foundKey], caddys int) {
	for i, g := range silent {
		same := func(other *agreed[foundKey]) bool {
			return other.value.Error == g.value.Error && slices.Equal(other.of, g.of)
		}
		if slices.IndexFunc(silent, same) < i {
			continue
		}
		var zones []string
		for _, other := range silent[i:] {
			if same(other) {
				zones = append(zones, shellWord(other.value.Zone))
			}
		}
		of := ""
		if len(g.of) < caddys {
			of = f.names(g.of) + ": "
		}
		fmt.Fprintf(f.out, "\n%s%s: %s.\n", of, enumerate("Zone", zones), g.value.Error)
	}
}

// printDoubts prints why the text is probably no key of some zones, once for those with the same key.
func (f *fleet) printDoubts(found []*agreed[adminapi.Key]) {
	var doubts []string
	zones := make(map[string][]string)
	for _, g := range found {
		doubt, name := g.value.Doubt, shellWord(g.value.Zone)
		if doubt == "" {
			continue
		}
		if zones[doubt] == nil {
			doubts = append(doubts, doubt)
		}
		if !slices.Contains(zones[doubt], name) {
			zones[doubt] = append(zones[doubt], name)
		}
	}
	for _, doubt := range doubts {
		fmt.Fprintf(f.out, "\n%s: %s.\n", enumerate("Zone", zones[doubt]), doubt)
	}
}

// views returns a view of each group. If instances differ, it says which ones each group is from.
func (f *fleet) views(found *shared[string, adminapi.Key], caddys int) []keyView {
	differ := found.differ(caddys)
	views := make([]keyView, len(found.all))
	for i, g := range found.all {
		views[i] = keyView{Key: &g.value, flags: f.flags}
		if differ {
			views[i].of = f.names(g.of)
		}
	}
	return views
}

// states prints a table of keys: a line for each plan of each key.
func (f *fleet) states(views []keyView, withZones bool) error {
	withPlans := slices.ContainsFunc(views, func(k keyView) bool { return len(k.Plans) > 0 })
	withInstances := slices.ContainsFunc(views, func(k keyView) bool { return k.of != "" })
	rows := [][]string{{caddyColumn, "ZONE", planColumn, "STATE", "USED", "LEFT", "MORE IN", keyColumn}}
	for _, view := range views {
		if view.Outcome == "" {
			rows = append(rows, []string{view.of, shellWord(view.Zone), "-", "?", "-", "-", "-", "-"})
			continue
		}
		for _, k := range view.byPlan() {
			rows = append(rows, slices.Concat([]string{k.of, shellWord(k.Zone), k.planName()}, k.numbers(), []string{showKey(k.KeyText)}))
		}
	}
	return f.table(only(map[string]bool{caddyColumn: withInstances, "ZONE": withZones, planColumn: withPlans, keyColumn: withZones}, rows))
}

// limit returns the limit of the zone.
func (k keyView) limit() string { return k.Limit + inParentheses(k.Rollout) }

// details returns the names and values of a key under one limit.
func (k keyView) details() (rows [][]string) {
	if k.Plan != "" {
		rows = append(rows, []string{"plan", shellWord(k.Plan)})
	}
	if k.Assumed != "" {
		rows = append(rows, []string{"assumed", k.Assumed})
	}
	rows = append(rows,
		[]string{"state", k.state()},
		[]string{"used", k.used()},
		[]string{"left", k.remaining()})
	if k.Lent > 0 {
		rows = append(rows, []string{"lent", lentTo(k.Lent, k.LentTo)})
	}
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
		rows = append(rows, []string{"last plan", shellWord(k.Lately.Plan)})
	}
	return rows
}

// lentTo says how much is lent to how many instances.
func lentTo(lent, caddys int64) string {
	return fmt.Sprintf("%d to %s: counts as used, but may not be spent yet", lent, plural(caddys, "instance"))
}
