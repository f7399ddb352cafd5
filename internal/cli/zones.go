package cli

import (
	"cmp"
	"errors"
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

func zonesCommand() *cobra.Command {
	cmd := ofFleet(&cobra.Command{
		Use:   "zones [<zone>]",
		Short: "Lists the zones and the outcomes of their requests",
		Long: `
Lists the zones of the running config, and the outcomes of their requests since a config
first named the zone, on all instances that share the store. RATE is of the last minute,
SHARE the part of all requests that was refused. A narrow terminal leaves out stores, keys
and rates. With the name of a zone, shows its details. The limits of adaptive_concurrency
follow, with those of their requests that run and wait now on this instance.
`,
		Example:           "  caddy rate-limit zones\n  caddy rate-limit zones clients",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
	})
	cmd.RunE = onFleet(func(f *fleet, args []string) error {
		if len(args) == 1 {
			return f.zone(args[0])
		}
		return f.zones()
	})
	return cmd
}

// zoneID is what instances of a fleet must agree on in order to count for the same zone.
type zoneID struct{ name, limit, rollout, key, store, onStoreError string }

// zoneSum is a zone with the counts of the instances that define it alike.
type zoneSum struct {
	adminapi.Zone
	of []*endpoint
}

// sumZones adds up the zones of all instances. Those that are defined differently stay apart.
func sumZones(answers []answer[[]adminapi.Zone]) (sums []*zoneSum) {
	known := make(map[zoneID]*zoneSum)
	for _, a := range answers {
		for _, z := range a.value {
			id := zoneID{z.Name, z.Limit, z.Rollout, z.Key, z.Store, z.OnStoreError}
			to := known[id]
			if to == nil {
				to = &zoneSum{Zone: z}
				known[id], sums = to, append(sums, to)
			} else {
				to.Totals, to.Keys, to.InUse = sumCounts(to.Totals, z.Totals), sumOf(to.Keys, z.Keys), sumOf(to.InUse, z.InUse)
				to.Rate = sumOf(to.Rate, z.Rate)
				to.Costs, to.CostSum = sumCounts(to.Costs, z.Costs), to.CostSum+z.CostSum
			}
			to.of = append(to.of, a.of)
		}
	}
	slices.SortStableFunc(sums, func(a, b *zoneSum) int { return strings.Compare(a.Name, b.Name) })
	return sums
}

// sumCounts returns the sums of two counts by name, and changes neither.
func sumCounts(a, b map[string]uint64) map[string]uint64 {
	if len(b) == 0 {
		return a
	}
	sums := make(map[string]uint64, len(b))
	maps.Copy(sums, a)
	for name, n := range b {
		sums[name] += n
	}
	return sums
}

func sumOf[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

// zones prints a line for each zone. In a narrow terminal, what does not fit is left out.
func (f *fleet) zones() error {
	answers := fetchAll[[]adminapi.Zone](f, "zones", nil)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	sums := sumZones(good)
	rows := f.zoneRows(sums, len(good))
	for _, column := range []string{"STORE", keyColumn} {
		if !f.fits(rows) {
			rows = only(map[string]bool{column: false}, rows)
		}
	}
	if !f.canFit(rows) {
		rows = only(map[string]bool{rateColumn: false, shareColumn: false}, rows)
	}
	if err := f.table(rows); err != nil {
		return err
	}
	if len(sums) > 0 {
		fmt.Fprintf(f.out, "\nCounted by %s.\n%s", f.counter(len(good)), withoutStore(sums))
	}
	f.printView()
	return errors.Join(err, f.adaptive())
}

// adaptive prints the limits of adaptive_concurrency, which each instance has for itself.
func (f *fleet) adaptive() error {
	var limits []adminapi.Adaptive
	if _, err := f.asked.fetch(http.MethodGet, "adaptive", nil, nil, &limits); err != nil || len(limits) == 0 {
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
	fmt.Fprintln(f.out)
	return f.table(rows)
}

// withoutStore describes the column ERRORS: the requests that the store did not decide.
func withoutStore(sums []*zoneSum) string {
	var open, closed, local uint64
	for _, z := range sums {
		n := z.Totals
		open, closed, local = open+n[outcome.Names[outcome.FailedOpen]], closed+n[outcome.Names[outcome.FailedClosed]], local+n[outcome.Names[outcome.Local]]
	}
	if open+closed+local == 0 {
		return ""
	}
	return fmt.Sprintf("ERRORS are requests that the store did not decide: %d let through, %d refused, %d admitted\nby the counts of one instance. Requests that these counts refused are under REFUSED.\n", open, closed, local)
}

// rateColumn and shareColumn are the headers of the requests in a second, and of the part that was refused.
const rateColumn, shareColumn = "RATE", "SHARE"

// zoneRows returns the rows of a table of zones, with all columns.
func (f *fleet) zoneRows(sums []*zoneSum, caddys int) [][]string {
	columns := outcomeColumns(sums)
	header := []string{caddyColumn, "ZONE", "LIMIT", keyColumn, "STORE", rateColumn}
	for i, column := range columns {
		if header = append(header, words(strings.ToUpper(column))); i == 1 {
			header = append(header, shareColumn)
		}
	}
	rows := [][]string{header}
	for _, g := range sums {
		z := &g.Zone
		limit := z.Limit + inParentheses(z.Rollout)
		if f.width > 0 {
			limit = shortLimit(z)
		}
		row := []string{f.names(g.of), shell.Word(z.Name), limit, orDash(z.KeyForm), z.Store, formatRate(z.Rate)}
		for i, column := range columns {
			if row = append(row, strconv.FormatUint(countColumn(z, column), 10)); i == 1 {
				row = append(row, refusedShare(z))
			}
		}
		rows = append(rows, row)
	}
	return only(map[string]bool{caddyColumn: slices.ContainsFunc(sums, func(z *zoneSum) bool { return len(z.of) < caddys })}, rows)
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

// outcomeColumns returns the columns for the outcomes that requests of these zones have had.
func outcomeColumns(zones []*zoneSum) []string {
	columns := slices.Clone(outcome.Columns[:2])
	for _, column := range outcome.Columns[2:] {
		if slices.ContainsFunc(zones, func(z *zoneSum) bool { return countColumn(&z.Zone, column) > 0 }) {
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

// words returns a name as words.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// shortLimit returns the limit of a zone with its numbers in front, so that they are not cut.
func shortLimit(z *adminapi.Zone) string {
	if len(z.Plans) > 0 {
		return plural(int64(len(z.Plans)), "plan") + inParentheses(z.Rollout)
	}
	algorithm, rest, _ := strings.Cut(z.Limit, " ")
	numbers, options, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(numbers + inParentheses(z.Rollout) + " " + algorithm + " " + options)
}

// zone prints all details of a zone, once for each of its definitions in the fleet.
func (f *fleet) zone(name string) error {
	answers := fetchAll[adminapi.Zone](f, zonePath(name, ""), nil)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	one := make([]answer[[]adminapi.Zone], len(good))
	for i, a := range good {
		one[i] = answer[[]adminapi.Zone]{of: a.of, value: []adminapi.Zone{a.value}}
	}
	for i, g := range sumZones(one) {
		if i > 0 {
			fmt.Fprintln(f.out)
		}
		rows := zoneDetails(&g.Zone)
		if !f.isOne() {
			rows = slices.Insert(rows, 1, []string{"caddy", f.names(g.of)})
		}
		if err := f.details(rows); err != nil {
			return err
		}
	}
	f.printView()
	return err
}

// zoneDetails returns what is known of a zone.
func zoneDetails(z *adminapi.Zone) [][]string {
	rows := [][]string{
		{"zone", shell.Word(z.Name)},
		{"limit", z.Limit + inParentheses(z.Rollout)},
		{"key", orDash(z.KeyForm)},
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
		rows = append(rows, []string{"costs", orDash(strings.Join(counts, ", "))}, []string{"cost sum", strconv.FormatUint(z.CostSum, 10)})
	}
	return rows
}

// inParentheses returns a text to put behind another one.
func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
