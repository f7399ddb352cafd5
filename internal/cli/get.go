package cli

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get [<zone>] [<key>...]",
		Short: "Shows what a key has used, and why it is refused",
		Long: `
Shows what a key of a zone has used, whether it is refused, why and until when, and
which command lets it through. Without a zone it looks up the key in all of them; a
single argument that is not the name of a zone is a key. This charges nothing.

If a request costs more than 1, what is used and what remains is in the unit of costs.
` + keyHelp,
		Example:           "  caddy rate-limit get 203.0.113.7\n  caddy rate-limit get clients 203.0.113.7",
		ValidArgsFunction: completeKeys,
		Args:              needsKey,
	}
	query := keyFlags(cmd)
	plan := cmd.Flags().String("plan", "", "The plan whose limit to show, if not that of requests without a plan")
	_ = cmd.RegisterFlagCompletionFunc("plan", completePlans)
	cost := cmd.Flags().Int64("cost", 0, "The cost of the request, if not that of the zone")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		key := args
		if len(key) > 0 {
			key = key[1:]
		}
		q, err := query(key)
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
			return e.find(q)
		}
		err = e.get(args[0], q)
		isKeyAlone := len(args) == 1 && *plan == "" && q.Get("key_base64") == ""
		if missing := new(apiError); isKeyAlone && errors.As(err, &missing) && missing.status == "404" {
			q.Set("key", args[0])
			return e.find(q)
		}
		return err
	}
	return cmd
}

// get prints a key of a zone.
func (e *endpoint) get(zone string, query url.Values) error {
	k := keyView{new(adminapi.Key)}
	if done, err := e.read(zonePath(zone, "/key"), query, k.Key); done || err != nil {
		return err
	}
	rows := [][]string{
		{"zone", shellWord(k.Zone)},
		{"key", showKey(k.KeyText)},
		{"limit", k.Limit + inParentheses(k.Rollout)},
	}
	if len(k.Plans) == 0 {
		if k.Plan != "" {
			rows = append(rows, []string{"plan", shellWord(k.Plan)})
		}
		if k.Assumed != "" {
			rows = append(rows, []string{"assumed", k.Assumed})
		}
		rows = append(rows,
			[]string{"state", k.state()},
			[]string{"used", fmt.Sprintf("%d of %d", k.Used, k.Quota)},
			[]string{"remaining", k.remaining()})
		if k.NextAfter > 0 {
			rows = append(rows, []string{"more in", k.atMost() + formatSeconds(k.NextAfter)})
		}
		if k.ResetAfter > 0 {
			rows = append(rows, []string{"all in", k.atMost() + formatSeconds(k.ResetAfter)})
		}
	}
	if r := k.Refusals; r != nil {
		rows = append(rows, []string{"refusals", fmt.Sprintf("%d of %d in %s lead to a ban", r.Count, r.Of, formatSeconds(r.Within))})
	}
	if k.Override != nil {
		rows = append(rows, []string{"override", describeOverride(k.Override)})
	}
	if k.Lately != nil {
		dryRun := ""
		if n := k.Lately.DryRun; n > 0 {
			dryRun = fmt.Sprintf(", %d would have been refused", n)
		}
		rows = append(rows, []string{"lately", fmt.Sprintf("%d requests, %d refused%s by this Caddy since %s",
			k.Lately.Requests, k.Lately.Refused, dryRun, k.Lately.Since.Local().Format(time.TimeOnly))})
		if k.Lately.Plan != "" {
			rows = append(rows, []string{"last plan", shellWord(k.Lately.Plan)})
		}
	}
	if err := e.details(rows); err != nil {
		return err
	}
	if len(k.Plans) > 0 {
		fmt.Fprintln(e.out)
		rows = [][]string{{"PLAN", "STATE", "USED", "REMAINING", "MORE IN"}}
		for _, plan := range k.byPlan() {
			rows = append(rows, append([]string{plan.planName()}, plan.numbers()...))
		}
		if err := e.table(rows); err != nil {
			return err
		}
		fmt.Fprintln(e.out, "\n"+k.whichPlan())
	}
	e.printReasons(k)
	return nil
}

// errNoAnswer is the error of a look-up that no zone has an answer to.
var errNoAnswer = errors.New("no zone has an answer for this key")

// find prints a key in all zones, and why zones refuse it.
func (e *endpoint) find(query url.Values) error {
	type found struct {
		adminapi.Key
		Error string `json:"error"`
	}
	var keys []found
	done, err := e.read("key", query, &keys)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k found) bool { return k.Error == "" }) {
		err = errNoAnswer
	}
	if done {
		return err
	}
	header, withPlans := []string{"ZONE", "STATE", "USED", "REMAINING", "MORE IN", "KEY"}, false
	if withPlans = slices.ContainsFunc(keys, func(k found) bool { return len(k.Plans) > 0 }); withPlans {
		header = slices.Insert(header, 1, "PLAN")
	}
	rows := [][]string{header}
	add := func(zone, plan string, more ...string) {
		row := []string{shellWord(zone)}
		if withPlans {
			row = append(row, plan)
		}
		rows = append(rows, append(row, more...))
	}
	for i := range keys {
		k := keyView{&keys[i].Key}
		if keys[i].Error != "" {
			add(k.Zone, "-", "?", "-", "-", "-", "-")
			continue
		}
		for _, plan := range k.byPlan() {
			add(k.Zone, plan.planName(), append(plan.numbers(), showKey(k.KeyText))...)
		}
	}
	if err := e.table(rows); err != nil {
		return err
	}
	for i := range keys {
		if k := &keys[i]; k.Error != "" {
			fmt.Fprintf(e.out, "\nZone %s: %s.\n", shellWord(k.Zone), k.Error)
		} else if v := (keyView{&k.Key}); v.worthReason() {
			e.printReasons(v)
		}
	}
	return err
}
