package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func zonesCommand(cmd *cobra.Command) {
	ofFleet(cmd)
	asks(cmd, func(c *instance, args []string) error {
		if len(args) == 1 {
			return c.zone(args[0])
		}
		return c.zones()
	})
}

// zones prints a line for each zone. In a narrow terminal, what does not fit is left out.
func (c *instance) zones() error {
	var zones []adminapi.Zone
	if done, err := c.ask("zones", nil, &zones); done || err != nil {
		return err
	}
	rows := c.zoneRows(zones)
	for _, column := range []string{"STORE", "KEY"} {
		if c.excess(widths(rows)) > 0 {
			rows = without(column, rows)
		}
	}
	if c.excess(c.fitted(rows)) > 0 {
		rows = without("RATE", without("SHARE", rows))
	}
	c.table(rows)
	if len(zones) > 0 {
		fmt.Fprintf(c.out, "\nCounted by %s.\n%s", c.counter(), withoutStore(zones))
	}
	c.printView()
	return c.adaptive()
}

// adaptive prints the limits of adaptive_concurrency, which each instance has for itself.
func (c *instance) adaptive() error {
	var limits []adminapi.Adaptive
	if _, err := c.fetch(http.MethodGet, "adaptive", nil, nil, &limits); err != nil || len(limits) == 0 {
		return err
	}
	rows := [][]string{{"ADAPTIVE", "LIMIT", "RUNNING", "WAITING", "USEFUL", "FAILED", "REFUSED", "NOW"}}
	for _, l := range limits {
		row := []string{shell.Word(l.Name)}
		for _, n := range []uint64{uint64(l.Limit), uint64(l.Running), uint64(l.Waiting), l.Useful, l.Failed, l.Refused} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		rows = append(rows, append(row, l.Trend))
	}
	fmt.Fprintln(c.out)
	c.table(rows)
	return nil
}

// withoutStore describes the column ERRORS: the requests that the store did not decide.
func withoutStore(zones []adminapi.Zone) string {
	var open, closed, local uint64
	for _, z := range zones {
		n := z.Totals
		open, closed, local = open+n[outcome.Names[outcome.FailedOpen]], closed+n[outcome.Names[outcome.FailedClosed]], local+n[outcome.Names[outcome.Local]]
	}
	if open+closed+local == 0 {
		return ""
	}
	return fmt.Sprintf("ERRORS are requests that the store did not decide: %d let through, %d refused, %d admitted\nby the counts of one instance. Requests that these counts refused are under REFUSED.\n", open, closed, local)
}

// zoneRows returns the rows of a table of zones, with all columns. Outcomes that no request has had, but for the first two, have
// none.
func (c *instance) zoneRows(zones []adminapi.Zone) [][]string {
	rows := [][]string{{"ZONE", "LIMIT", "KEY", "STORE", "RATE"}}
	for i := range zones {
		z := &zones[i]
		limit := z.Limit + inParentheses(z.Rollout)
		if c.width > 0 {
			limit = shortLimit(z)
		}
		rows = append(rows, []string{shell.Word(z.Name), limit, cmp.Or(z.KeyForm, "-"), z.Store, formatRate(z.Rate)})
	}
	for i, column := range outcome.Columns {
		counts := make([]uint64, len(zones))
		for j := range zones {
			counts[j] = countColumn(&zones[j], column)
		}
		if i > 1 && (len(zones) == 0 || slices.Max(counts) == 0) {
			continue
		}
		rows[0] = append(rows[0], words(strings.ToUpper(column)))
		for j, n := range counts {
			rows[j+1] = append(rows[j+1], strconv.FormatUint(n, 10))
		}
		if i == 1 {
			rows[0] = append(rows[0], "SHARE")
			for j := range zones {
				rows[j+1] = append(rows[j+1], refusedShare(&zones[j]))
			}
		}
	}
	return rows
}

// formatRate formats how many requests come in a second. All rates below 1000 have the same width.
func formatRate(rate *float64) string {
	switch {
	case rate == nil:
		return "-"
	case *rate < 10:
		return fmt.Sprintf("%5.2f/s", *rate)
	}
	return fmt.Sprintf("%5.1f/s", *rate)
}

// refusedShare returns the part of a zone's requests that it has refused.
func refusedShare(z *adminapi.Zone) string {
	all := uint64(0)
	for _, n := range z.Totals {
		all += n
	}
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(countColumn(z, outcome.Columns[1]))/float64(all))
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

// partsOf lists the counts that add up to that of a column, if it has several outcomes.
func partsOf(z *adminapi.Zone, column string) string {
	var parts []string
	for o, name := range outcome.Names {
		if n := z.Totals[name]; n > 0 && name != column && outcome.Outcome(o).Column() == column {
			parts = append(parts, fmt.Sprintf("%d %s", n, words(name)))
		}
	}
	return strings.Join(parts, ", ")
}

// shortLimit returns the limit of a zone with its numbers in front, so that they are not cut.
func shortLimit(z *adminapi.Zone) string {
	if len(z.Plans) > 0 {
		return plural(int64(len(z.Plans)), "plan") + inParentheses(z.Rollout)
	}
	algorithm, rest, _ := strings.Cut(z.Limit, " ")
	numbers, options, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(numbers + inParentheses(z.Rollout) + " " + algorithm + " " + options)
}

// zone prints all details of a zone.
func (c *instance) zone(name string) error {
	z := new(adminapi.Zone)
	if done, err := c.ask(zonePath(name, ""), nil, z); done || err != nil {
		return err
	}
	c.details(zoneDetails(z))
	c.printView()
	return nil
}

// zoneDetails returns what is known of a zone.
func zoneDetails(z *adminapi.Zone) [][]string {
	rows := [][]string{
		{"zone", shell.Word(z.Name)},
		{"limit", z.Limit + inParentheses(z.Rollout)},
		{"key", cmp.Or(z.KeyForm, "-")},
		{"store", z.Store},
		{"on_store_error", z.OnStoreError},
	}
	if z.Keys != nil {
		rows = append(rows, []string{"keys", strconv.FormatInt(*z.Keys, 10)})
	}
	if z.InUse != nil {
		rows = append(rows, []string{"in use", strconv.FormatInt(*z.InUse, 10)})
	}
	if z.Rate != nil {
		rows = append(rows, []string{"rate", strings.TrimSpace(formatRate(z.Rate)) + " in the last minute"})
	}
	for _, column := range outcome.Columns {
		rows = append(rows, []string{words(column), strconv.FormatUint(countColumn(z, column), 10) + inParentheses(partsOf(z, column))})
	}
	if len(z.Costs) > 0 {
		var counts []string
		for _, name := range slices.Sorted(maps.Keys(z.Costs)) {
			if n := z.Costs[name]; n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, words(name)))
			}
		}
		rows = append(rows, []string{"costs", cmp.Or(strings.Join(counts, ", "), "-")}, []string{"cost sum", strconv.FormatUint(z.CostSum, 10)})
	}
	return rows
}
