package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

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
