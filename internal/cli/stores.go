package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func storesCommand() *cobra.Command {
	cmd := ofFleet(&cobra.Command{
		Use:   "stores",
		Short: "Shows the stores and their health",
		Long: `
Shows the stores of the running config. Each is sent a test call that changes nothing, so
ANSWERS is about this moment. BREAKER is failing if calls fail, but too few to open it.
P50 and P99 are how long requests of the last minute waited for the store. What other
instances say is up to some seconds old, without a test call.

With --check the exit code is 1 if a store does not answer, for monitoring.
`,
		Args: cobra.NoArgs,
	})
	check := cmd.Flags().Bool("check", false, "Fail if a store does not answer")
	cmd.RunE = onFleet(func(f *fleet, _ []string) error {
		if *check && f.about == askIfFleet { // each instance is monitored by itself
			f.about = ""
		}
		return f.stores(*check)
	})
	return cmd
}

// stores prints the stores. With check, a store that does not answer is an error.
func (f *fleet) stores(check bool) error {
	answers := fetchAll[[]adminapi.Store](f, "stores", nil)
	good, err := answered(f, answers)
	var silent []string
	for _, a := range good {
		for _, s := range a.value {
			if check && s.Answers != nil && !*s.Answers {
				silent = append(silent, f.mark(a.of)+inLine(s.Name))
			}
		}
	}
	if silent != nil {
		err = errors.Join(err, fmt.Errorf("not all stores answer: %s", strings.Join(silent, ", ")))
	}
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	rows := [][]string{{caddyColumn, "STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", "ZONES"}}
	var faults []string
	for _, a := range good {
		for _, s := range a.value {
			rows = append(rows, append([]string{a.of.address}, storeCells(&s)...))
			if s.Error != "" {
				faults = append(faults, f.mark(a.of)+inLine(s.Name+": "+s.Error))
			}
			for _, m := range s.Silent {
				faults = append(faults, f.mark(a.of)+inLine(s.Name+": "+m.Address+" is silent: "+m.Error))
			}
		}
	}
	if err := f.table(only(map[string]bool{caddyColumn: !f.isOne()}, rows)); err != nil {
		return err
	}
	for _, fault := range faults {
		fmt.Fprintln(f.out, fault)
	}
	f.printView()
	return err
}

// storeCells returns what an instance says of a store.
func storeCells(s *adminapi.Store) []string {
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
	breaker := inLine(orDash(s.Breaker))
	if answers == "no" && breaker == "closed" {
		breaker = "failing" // the calls that failed were too few to open it
	}
	return []string{inLine(s.Name), answers, breaker, p50, p99, caddys, keys, shell.Words(s.Zones)}
}
