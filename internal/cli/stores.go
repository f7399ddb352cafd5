package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func storesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stores",
		Short: "Shows the stores and their health",
		Long: `
Shows the stores of the running config. Each store is sent a test call that changes
nothing, so ANSWERS is true of this moment. The latencies are those of all calls since
this Caddy began to use the store.

With --check the exit code is 1 if a store does not answer, for monitoring.
`,
		Args: cobra.NoArgs,
	}
	check := cmd.Flags().Bool("check", false, "Fail if a store does not answer")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		return e.stores(*check)
	}
	return cmd
}

// stores prints the stores. With check, a store that does not answer is an error.
func (e *endpoint) stores(check bool) error {
	var stores []adminapi.Store
	done, err := e.read("stores", nil, &stores)
	if err != nil {
		return err
	}
	var silent []string
	for _, s := range stores {
		if check && s.Answers != nil && !*s.Answers {
			silent = append(silent, s.Name)
		}
	}
	if silent != nil {
		err = fmt.Errorf("not all stores answer: %s", strings.Join(silent, ", "))
	}
	if done {
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
			p50, p99 = formatSeconds(s.Latency.P50), formatSeconds(s.Latency.P99)
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
	return err
}
