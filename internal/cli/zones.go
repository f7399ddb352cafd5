package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

func zonesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "zones [<zone>]",
		Short: "Lists the zones and the outcomes of their requests",
		Long: `
Lists the zones of the running config: their limits, keys and stores, and how many
requests on this Caddy were allowed, were refused, would have been refused by a dry
run, and none of these, since a config first named the zone. With the name of a zone, shows all of its details.
`,
		Example:           "  caddy rate-limit zones\n  caddy rate-limit zones clients",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := newEndpoint(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return e.zone(args[0])
			}
			return e.zones()
		},
	}
}

func (e *endpoint) zones() error {
	var zones []adminapi.Zone
	if done, err := e.read("zones", nil, &zones); done || err != nil {
		return err
	}
	rows := [][]string{{"ZONE", "LIMIT", "KEY", "STORE", "ALLOWED", "REFUSED", "WOULD REFUSE", "OTHER"}}
	for _, z := range zones {
		allowed, wouldRefuse := z.Totals[outcome.Names[outcome.Allowed]], z.Totals[outcome.Names[outcome.DryRun]]
		refused, others := uint64(0), uint64(0)
		for o, name := range outcome.Names {
			switch {
			case outcome.Outcome(o).Declined():
				refused += z.Totals[name]
			case outcome.Outcome(o) != outcome.Allowed && outcome.Outcome(o) != outcome.DryRun:
				others += z.Totals[name]
			}
		}
		rows = append(rows, []string{
			shellWord(z.Name), z.Limit + inParentheses(z.Rollout), orDash(z.Key), z.Store,
			strconv.FormatUint(allowed, 10), strconv.FormatUint(refused, 10), strconv.FormatUint(wouldRefuse, 10), strconv.FormatUint(others, 10),
		})
	}
	return e.table(rows)
}

func (e *endpoint) zone(name string) error {
	var z adminapi.Zone
	if done, err := e.read(zonePath(name, ""), nil, &z); done || err != nil {
		return err
	}
	rows := [][]string{
		{"zone", shellWord(z.Name)},
		{"limit", z.Limit + inParentheses(z.Rollout)},
		{"key", orDash(z.Key)},
		{"store", z.Store},
		{"on_store_error", z.OnStoreError},
	}
	if z.Keys != nil {
		rows = append(rows, []string{"keys", strconv.FormatInt(*z.Keys, 10)})
	}
	if z.InUse != nil {
		rows = append(rows, []string{"in use", strconv.FormatInt(*z.InUse, 10)})
	}
	for _, outcome := range outcome.Names {
		rows = append(rows, []string{strings.ReplaceAll(outcome, "_", " "), strconv.FormatUint(z.Totals[outcome], 10)})
	}
	for _, use := range z.Uses {
		line, err := readable(use)
		if err != nil {
			return err
		}
		rows = append(rows, []string{"defined as", line})
	}
	return e.details(rows)
}

// inParentheses returns a text to put behind another one.
func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
