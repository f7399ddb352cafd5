package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func storesCommand(cmd *cobra.Command) {
	ofFleet(cmd)
	check := cmd.Flags().Bool("check", false, "Fail if a store does not answer")
	asks(cmd, func(c *instance, _ []string) error {
		if *check && c.about == askIfFleet { // each instance is monitored by itself
			c.about = ""
		}
		return c.stores(*check)
	})
}

// stores prints the stores. With check, a store that does not answer is an error.
func (c *instance) stores(check bool) error {
	var stores []adminapi.Store
	done, err := c.ask("stores", nil, &stores)
	if err != nil {
		return err
	}
	rows := [][]string{{"CADDY", "STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", "ZONES"}}
	var faults, silent []string
	for _, s := range stores {
		rows = append(rows, storeCells(&s))
		name := replay.Printable(strings.TrimPrefix(s.Instance+": "+s.Name, ": "))
		if s.Error != "" {
			faults = append(faults, name+": "+replay.Printable(s.Error))
		}
		for _, m := range s.Silent {
			faults = append(faults, name+": "+replay.Printable(m.Address+" is silent: "+m.Error))
		}
		if check && s.Answers != nil && !*s.Answers {
			silent = append(silent, name)
		}
	}
	if silent != nil {
		err = errors.New("not all stores answer: " + strings.Join(silent, ", "))
	}
	if done {
		return err
	}
	c.table(rows)
	for _, fault := range faults {
		fmt.Fprintln(c.out, fault)
	}
	c.printView()
	return err
}

// storeCells returns what an instance says of a store.
func storeCells(s *adminapi.Store) []string {
	cells := []string{
		replay.Printable(s.Instance), replay.Printable(s.Name), "", replay.Printable(s.Breaker), "", "", "", "", shell.Words(s.Zones),
	}
	if s.Answers != nil {
		cells[2] = map[bool]string{true: "yes", false: "no"}[*s.Answers]
		if !*s.Answers && s.Breaker == "closed" {
			cells[3] = "failing" // the calls that failed were too few to open it
		}
	}
	if s.Latency != nil && s.Latency.Count > 0 {
		cells[4], cells[5] = formatSeconds(s.Latency.P50), formatSeconds(s.Latency.P99)
	}
	if s.Instances > 0 {
		cells[6] = strconv.Itoa(s.Instances)
	}
	if s.Keys != nil {
		cells[7] = strconv.FormatInt(*s.Keys, 10)
	}
	return cells
}
