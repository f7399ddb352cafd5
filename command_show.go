package caddyratelimit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

func zonesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "zones [<zone>]",
		Short: "Lists the zones, and what became of their requests",
		Long: `
Lists the zones of the config that runs: their limits, what they tell clients
apart by, where they count, and how many requests they have let through, refused
and otherwise met on this Caddy since a config first named them. With the name of
a zone, shows all that is known of it.
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
	rows := [][]string{{"ZONE", "LIMIT", "KEY", "STORE", "ALLOWED", "REFUSED", "OTHER"}}
	for _, z := range zones {
		allowed, refused, others := z.Totals[outcome.Names[outcome.Allowed]], uint64(0), uint64(0)
		for o, name := range outcome.Names {
			switch {
			case outcome.Outcome(o).Declined():
				refused += z.Totals[name]
			case outcome.Outcome(o) != outcome.Allowed:
				others += z.Totals[name]
			}
		}
		rows = append(rows, []string{
			shellWord(z.Name), z.Limit, orDash(z.Key), z.Store,
			strconv.FormatUint(allowed, 10), strconv.FormatUint(refused, 10), strconv.FormatUint(others, 10),
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
		{"limit", z.Limit},
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
		var line bytes.Buffer
		if err := json.Compact(&line, use); err != nil {
			return err
		}
		rows = append(rows, []string{"defined as", line.String()})
	}
	return e.table(rows)
}

func topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [<zone>]",
		Short: "Lists the keys that come, or are refused, most often",
		Long: `
Lists the keys of a zone, or of all zones, that have met this Caddy most often in
the last five to ten minutes, or with --refused those that were refused most
often. "120..130" says that it was at least 120 times and at most 130.
`,
		Example:           "  caddy rate-limit top --refused\n  caddy rate-limit top clients -n 50",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
	}
	refused := cmd.Flags().Bool("refused", false, "Sort by refusals, and leave out keys without any")
	n := cmd.Flags().IntP("number", "n", 10, "How many keys of each zone, at most 1000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		query := url.Values{"n": {strconv.Itoa(*n)}}
		if *refused {
			query.Set("by", "refused")
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
	rows := [][]string{{"ZONE", "REQUESTS", "REFUSED", "KEY"}}
	for _, list := range lists {
		for _, k := range list.Keys {
			rows = append(rows, []string{
				shellWord(list.Zone), between(k.Requests, k.RequestsError), between(k.Refused, k.RefusedError), shellKey(k.KeyText),
			})
		}
	}
	return e.table(rows)
}

// between writes a count that may be higher.
func between(least, more uint64) string {
	if more == 0 {
		return strconv.FormatUint(least, 10)
	}
	return fmt.Sprintf("%d..%d", least, least+more)
}

func storesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stores",
		Short: "Shows where zones count, and whether that works",
		Long: `
Shows the stores of the config that runs. Each is asked for something that changes
nothing, so that "answers" is true of this moment; the latencies are those of all
decisions since this Caddy began to use the store.
`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := newEndpoint(cmd)
			if err != nil {
				return err
			}
			return e.stores()
		},
	}
}

func (e *endpoint) stores() error {
	var stores []adminapi.Store
	if done, err := e.read("stores", nil, &stores); done || err != nil {
		return err
	}
	rows := [][]string{{"STORE", "ANSWERS", "BREAKER", "P50", "P99", "CADDYS", "KEYS", "ZONES"}}
	var faults []string
	for _, s := range stores {
		answers, p50, p99, keys, caddys := "-", "-", "-", "-", "-"
		if s.Answers != nil {
			answers = map[bool]string{true: "yes", false: "no"}[*s.Answers]
		}
		if s.Latency != nil && s.Latency.Count > 0 {
			p50, p99 = wait(s.Latency.P50), wait(s.Latency.P99)
		}
		if s.Keys != nil {
			keys = strconv.FormatInt(*s.Keys, 10)
		}
		if s.Instances > 0 {
			caddys = strconv.Itoa(s.Instances)
		}
		zones := make([]string, len(s.Zones))
		for i, zone := range s.Zones {
			zones[i] = shellWord(zone)
		}
		rows = append(rows, []string{s.Name, answers, orDash(s.Breaker), p50, p99, caddys, keys, strings.Join(zones, " ")})
		if s.Error != "" {
			faults = append(faults, s.Name+": "+s.Error)
		}
	}
	if err := e.table(rows); err != nil {
		return err
	}
	for _, fault := range faults {
		fmt.Fprintln(e.out, fault)
	}
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// wait writes seconds for people.
func wait(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(time.Second / 10)
	case d >= time.Millisecond:
		d = d.Round(time.Millisecond / 10)
	}
	return d.String()
}
