package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

func zonesCommand(cmd *cobra.Command) {
	ofFleet(cmd)
	asks(cmd, func(c *instance, args []string) error {
		var zones []adminapi.Zone
		done, err := c.ask("zones", url.Values{"zone": args}, &zones)
		switch {
		case done || err != nil:
			return err
		case len(args) == 0:
			return c.zones(zones)
		}
		c.details(zoneDetails(&zones[0]))
		c.printView()
		return nil
	})
}

// zones prints a line for each zone.
func (c *instance) zones(zones []adminapi.Zone) error {
	header := []string{"ZONE", "RATE"}
	for _, column := range outcome.Columns {
		header = append(header, words(strings.ToUpper(column)))
	}
	rows := [][]string{append(header, "LIMIT")}
	for i := range zones {
		rows = append(rows, zoneCells(&zones[i]))
	}
	c.table(rows)
	if len(zones) > 0 {
		fmt.Fprintf(c.out, "\nCounted by %s.\n", c.counter())
	}
	c.printView()
	return c.adaptive()
}

// zoneCells returns the row of a zone.
func zoneCells(z *adminapi.Zone) []string {
	row := []string{shell.Word(z.Name), formatRate(z.Rate)}
	for i, column := range outcome.Columns {
		n := uint64(0)
		for o, name := range outcome.Names {
			if outcome.Outcome(o).Column() == column {
				n += z.Totals[name]
			}
		}
		if row = append(row, formatCount(n)); n == 0 && i > 1 {
			row[len(row)-1] = ""
		}
	}
	return append(row, shortLimit(z))
}

// adaptive prints the limits of adaptive_concurrency, which each instance has for itself.
func (c *instance) adaptive() error {
	var limits []adminapi.Adaptive
	if _, err := c.fetch(http.MethodGet, "adaptive", nil, nil, &limits); err != nil || len(limits) == 0 {
		return err
	}
	rows := [][]string{{"ADAPTIVE", "LIMIT", "RUNNING", "WAITING", "USEFUL", "FAILED", "REFUSED", "NOW"}}
	for _, l := range limits {
		rows = append(rows, []string{
			shell.Word(l.Name), strconv.Itoa(l.Limit), strconv.Itoa(l.Running), strconv.Itoa(l.Waiting),
			formatCount(l.Useful), formatCount(l.Failed), formatCount(l.Refused), l.Trend,
		})
	}
	fmt.Fprintln(c.out)
	c.table(rows)
	return nil
}

// formatRate formats how many requests come in a second.
func formatRate(rate float64) string {
	return fmt.Sprintf("%.2f/s", rate)
}

// shortLimit returns the limit of a zone with its numbers in front, which are not cut in a narrow terminal.
func shortLimit(z *adminapi.Zone) string {
	if len(z.Plans) > 0 {
		return say.Plural(len(z.Plans), "plan") + inParentheses(z.Rollout)
	}
	algorithm, rest, _ := strings.Cut(z.Limit, " ")
	numbers, options, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(numbers + inParentheses(z.Rollout) + " " + algorithm + " " + options)
}

// zoneDetails returns what is known of a zone.
func zoneDetails(z *adminapi.Zone) (rows [][]string) {
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	add("zone", shell.Word(z.Name))
	add("limit", z.Limit+inParentheses(z.Rollout))
	add("key", cmp.Or(z.KeyForm, "-"))
	add("store", z.Store)
	add("on_store_error", z.OnStoreError)
	if z.Keys != nil {
		add("keys", strconv.FormatInt(*z.Keys, 10))
	}
	if z.InUse != nil {
		add("in use", strconv.FormatInt(*z.InUse, 10))
	}
	add("rate", formatRate(z.Rate)+" in the last minute")
	for _, name := range outcome.Names {
		if n := z.Totals[name]; n > 0 {
			add(words(name), formatCount(n))
		}
	}
	if len(z.Costs) > 0 {
		var counts []string
		for _, name := range slices.Sorted(maps.Keys(z.Costs)) {
			if n := z.Costs[name]; n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, words(name)))
			}
		}
		add("costs", cmp.Or(strings.Join(counts, ", "), "-"))
		add("cost sum", formatCount(z.CostSum))
	}
	return rows
}

func storesCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, _ []string) error { return c.stores() })
}

// stores prints the stores, and what they say is wrong.
func (c *instance) stores() error {
	var stores []adminapi.Store
	if done, err := c.ask("stores", nil, &stores); done || err != nil {
		return err
	}
	rows := [][]string{{"STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", "ZONES"}}
	var faults []string
	for _, s := range stores {
		rows = append(rows, storeCells(&s))
		if s.Error != "" {
			faults = append(faults, s.Name+": "+s.Error)
		}
		for _, m := range s.Silent {
			faults = append(faults, s.Name+": "+m.Address+" is silent: "+m.Error)
		}
	}
	c.table(rows)
	for _, fault := range faults {
		fmt.Fprintln(c.out, say.Printable(fault))
	}
	return nil
}

// storeCells returns the row of a store.
func storeCells(s *adminapi.Store) []string {
	cells := []string{s.Name, "", s.Breaker, "", "", "", "", shell.Words(s.Zones)}
	if s.Answers != nil {
		cells[1] = map[bool]string{true: "yes", false: "no"}[*s.Answers]
		if !*s.Answers && s.Breaker == "closed" {
			cells[2] = "failing" // the calls that failed were too few to open it
		}
	}
	if s.Latency != nil && s.Latency.Count > 0 {
		cells[3], cells[4] = duration.Seconds(s.Latency.P50), duration.Seconds(s.Latency.P99)
	}
	if s.Instances > 0 {
		cells[5] = strconv.Itoa(s.Instances)
	}
	if s.Keys != nil {
		cells[6] = strconv.FormatInt(*s.Keys, 10)
	}
	return cells
}
