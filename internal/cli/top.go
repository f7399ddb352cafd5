package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func topCommand() *cobra.Command {
	cmd := ofFleet(&cobra.Command{
		Use:   "top [<zone>]",
		Short: "Lists the most frequent, or most refused, keys",
		Long: `
Lists the keys of a zone, or of all zones, with the most requests in the last five to ten
minutes, on all instances that share the store. "120..130" means at least 120 and at
most 130.

With --networks it lists the smallest networks that explain the requests, of those that
have at least 1 % of them. Instances begin to count with this command, so ask again in a
minute.
`,
		Example:           "  caddy rate-limit top --refused\n  caddy rate-limit top clients -n 50",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
	})
	refused := cmd.Flags().Bool("refused", false, "Sort by refusals, and leave out keys without any")
	dryRun := cmd.Flags().Bool("dry-run", false, "Sort by what a dry run would have refused, and leave out keys without any")
	networks := cmd.Flags().Bool("networks", false, "List networks in place of keys, while somebody looks")
	cmd.MarkFlagsMutuallyExclusive("refused", "dry-run", "networks")
	n := cmd.Flags().IntP("number", "n", 10, "How many keys, at most 1000")
	cmd.RunE = onFleet(func(f *fleet, args []string) error {
		by, zone := byRequests, ""
		switch {
		case *refused:
			by = "refused"
		case *dryRun:
			by = "dry_run"
		}
		if len(args) > 0 {
			zone = args[0]
		}
		if *networks {
			return f.topNetworks(zone, *n)
		}
		return f.top(zone, by, *n)
	})
	return cmd
}

// noKeys says what would fill a list of keys, by what it is sorted by.
var noKeys = map[string]string{
	byRequests: "There are no keys: no zone has counted a request in the last minutes. 'caddy rate-limit explain <url>' says which zones count a request.",
	"refused":  "There are no refused keys: no zone has refused a request in the last minutes. Without --refused, all keys are listed.",
	"dry_run":  "There are no keys that a dry run would have refused. Zones with enforce list them here.",
}

// top prints the most frequent keys of a zone, or of all zones.
func (f *fleet) top(zone, by string, n int) error {
	shown, err := f.topLists(zone, by, n)
	if shown == nil {
		return err
	}
	if len(shown.keys) == 0 {
		f.say("%s", noKeys[by])
		f.printView()
		return err
	}
	withPlans := slices.ContainsFunc(shown.keys, func(k topKey) bool { return k.Plan != "" })
	rows := [][]string{{"ZONE", planColumn, "REQUESTS", "REFUSED", "DRY RUN", keyColumn}}
	for _, k := range shown.keys {
		rows = append(rows, []string{
			shell.Word(k.zone), showPlan(k.Plan), formatCount(k.Requests, k.RequestsError), formatCount(k.Refused, k.RefusedError),
			formatCount(k.DryRun, k.DryRunError), shell.ShowKey(k.KeyText),
		})
	}
	if err := f.table(only(map[string]bool{planColumn: withPlans}, rows)); err != nil {
		return err
	}
	if !shown.since.IsZero() {
		fmt.Fprintf(f.out, "\nCounted by %s since %s.\n", f.counter(shown.caddys), shown.since.Local().Format(time.TimeOnly))
	}
	f.printView()
	return err
}

// showPlan returns the name of a plan for a shell.
func showPlan(name string) string {
	if name == "" {
		return "-"
	}
	return shell.Word(name)
}

// formatCount formats a count that may be higher by up to more.
func formatCount(least, more uint64) string {
	if more == 0 {
		return strconv.FormatUint(least, 10)
	}
	return fmt.Sprintf("%d..%d", least, least+more)
}

// fetchNetworks gets the networks of each instance, of a zone or of all zones without a name.
func (f *fleet) fetchNetworks(zone string) (lists []answer[[]adminapi.Networks]) {
	if zone == "" {
		return fetchAll[[]adminapi.Networks](f, "networks", nil)
	}
	for _, a := range fetchAll[adminapi.Networks](f, zonePath(zone, "/networks"), nil) {
		lists = append(lists, answer[[]adminapi.Networks]{a.of, []adminapi.Networks{a.value}, a.text, a.err})
	}
	return lists
}

// topNetworks prints the networks with the most requests, of a zone or of all zones.
func (f *fleet) topNetworks(zone string, n int) error {
	answers := f.fetchNetworks(zone)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	by := f.counter(len(good))
	if !f.isOne() {
		good = []answer[[]adminapi.Networks]{{of: f.asked, value: f.view.Networks}}
	}
	rows := [][]string{{"ZONE", "REQUESTS", "REFUSED", "KEYS", "BEFORE", "NETWORK"}}
	since, nowhere, unlisted := time.Now(), true, uint64(0)
	for _, a := range good {
		for _, list := range a.value {
			nowhere, unlisted = false, max(unlisted, list.Unlisted)
			if list.Since.Before(since) {
				since = list.Since
			}
			for _, c := range list.Networks[:min(n, len(list.Networks))] {
				before := "-"
				if c.Before != nil {
					before = formatCount(*c.Before, c.BeforeError)
				}
				rows = append(rows, []string{
					shell.Word(list.Zone), formatCount(c.Requests, c.Error), formatCount(c.Refused, c.Error),
					"about " + formatCount(c.Keys, max(c.Keys, c.KeysMost)-c.Keys), before, c.Network,
				})
			}
		}
	}
	switch {
	case nowhere:
		fmt.Fprintln(f.out, "No zone has an address in its key.")
		return err
	case len(rows) == 1:
		fmt.Fprintln(f.out, "No network has 1 % of the requests, or counting has just begun: ask again in a minute.")
		return err
	}
	err = errors.Join(f.table(rows), err)
	fmt.Fprintf(f.out, "\nCounted by %s since %s. KEYS may be wrong by a quarter; BEFORE is ten minutes before.\n", by, since.Local().Format(time.TimeOnly))
	if unlisted > 0 {
		f.say("What is not listed may have up to %d requests.", unlisted)
	}
	f.printView()
	return err
}
