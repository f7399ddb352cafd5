package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [<zone>]",
		Short: "Lists the most frequent, or most refused, keys",
		Long: `
Lists the keys of a zone, or of all zones, with the most requests on this Caddy in
the last five to ten minutes, with --refused those with the most refusals, or with
--dry-run those with the most requests that a dry run would have refused.
"120..130" means at least 120 and at most 130.
`,
		Example:           "  caddy rate-limit top --refused\n  caddy rate-limit top clients -n 50",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
	}
	refused := cmd.Flags().Bool("refused", false, "Sort by refusals, and leave out keys without any")
	dryRun := cmd.Flags().Bool("dry-run", false, "Sort by what a dry run would have refused, and leave out keys without any")
	cmd.MarkFlagsMutuallyExclusive("refused", "dry-run")
	n := cmd.Flags().IntP("number", "n", 10, "How many keys of each zone, at most 1000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		query := url.Values{"n": {strconv.Itoa(*n)}}
		switch {
		case *refused:
			query.Set("by", "refused")
		case *dryRun:
			query.Set("by", "dry_run")
		}
		if len(args) == 0 {
			return e.top("top", query)
		}
		return e.top(zonePath(args[0], "/top"), query)
	}
	return cmd
}

func (e *endpoint) top(path string, query url.Values) error {
	var lists []adminapi.Top
	answer := any(&lists)
	if path != "top" {
		lists = make([]adminapi.Top, 1)
		answer = &lists[0]
	}
	if done, err := e.read(path, query, answer); done || err != nil {
		return err
	}
	header, withPlans := []string{"ZONE", "REQUESTS", "REFUSED", "DRY RUN", "KEY"}, false
	for _, list := range lists {
		withPlans = withPlans || slices.ContainsFunc(list.Keys, func(k adminapi.KeyCount) bool { return k.Plan != "" })
	}
	if withPlans {
		header = slices.Insert(header, 1, "PLAN")
	}
	rows := [][]string{header}
	for _, list := range lists {
		for _, k := range list.Keys {
			row := []string{
				shellWord(list.Zone), formatCount(k.Requests, k.RequestsError), formatCount(k.Refused, k.RefusedError),
				formatCount(k.DryRun, k.DryRunError), showKey(k.KeyText),
			}
			if withPlans {
				row = slices.Insert(row, 1, showPlan(k.Plan))
			}
			rows = append(rows, row)
		}
	}
	if err := e.table(rows); err != nil || query.Get("by") != "dry_run" {
		return err
	}
	since := time.Time{}
	for _, list := range lists {
		if list.Since != nil && (since.IsZero() || list.Since.Before(since)) {
			since = *list.Since
		}
	}
	if !since.IsZero() {
		fmt.Fprintf(e.out, "\nCounted by this Caddy since %s.\n", since.Local().Format(time.TimeOnly))
	}
	return nil
}

// showPlan returns the name of a plan for a shell.
func showPlan(name string) string {
	if name == "" {
		return "-"
	}
	return shellWord(name)
}

// formatCount formats a count that may be higher by up to more.
func formatCount(least, more uint64) string {
	if more == 0 {
		return strconv.FormatUint(least, 10)
	}
	return fmt.Sprintf("%d..%d", least, least+more)
}
