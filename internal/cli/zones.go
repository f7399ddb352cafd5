package cli

import (
	"slices"
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
requests on this Caddy had which outcome since a config first named the zone. Other
outcomes than allowed and refused have a column if there were any. With the name of a
zone, shows all of its details.
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
	columns := outcomeColumns(zones)
	header := []string{"ZONE", "LIMIT", "KEY", "STORE"}
	for _, column := range columns {
		header = append(header, words(strings.ToUpper(column)))
	}
	rows := [][]string{header}
	for _, z := range zones {
		row := []string{shellWord(z.Name), z.Limit + inParentheses(z.Rollout), orDash(z.Key), z.Store}
		for _, column := range columns {
			row = append(row, strconv.FormatUint(countColumn(&z, column), 10))
		}
		rows = append(rows, row)
	}
	return e.table(rows)
}

// outcomeColumns returns the columns for the outcomes that requests of these zones have had.
func outcomeColumns(zones []adminapi.Zone) []string {
	columns := slices.Clone(outcome.Columns[:2])
	for _, column := range outcome.Columns[2:] {
		if slices.ContainsFunc(zones, func(z adminapi.Zone) bool { return countColumn(&z, column) > 0 }) {
			columns = append(columns, column)
		}
	}
	return columns
}

// countColumn counts the requests of a zone whose outcomes belong to a column.
func countColumn(z *adminapi.Zone, column string) (n uint64) {
	for o, name := range outcome.Names {
		if outcome.Outcome(o).Column() == column {
			n += z.Totals[name]
		}
	}
	return n
}

// words returns a name as words.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

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
	for o, name := range outcome.Names {
		label := words(name)
		if column := outcome.Outcome(o).Column(); column != name {
			label += inParentheses(column)
		}
		rows = append(rows, []string{label, strconv.FormatUint(z.Totals[name], 10)})
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
