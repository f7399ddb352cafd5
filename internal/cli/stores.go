package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func storesCommand(cmd *cobra.Command) {
	ofFleet(cmd)
	asks(cmd, func(c *instance, _ []string) error { return c.stores() })
}

// stores prints the stores, and what they say is wrong.
func (c *instance) stores() error {
	var stores []adminapi.Store
	if done, err := c.ask("stores", nil, &stores); done || err != nil {
		return err
	}
	rows := [][]string{{"CADDY", "STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", "ZONES"}}
	var faults []string
	for _, s := range stores {
		rows = append(rows, storeCells(&s))
		name := strings.TrimPrefix(s.Instance+": "+s.Name, ": ")
		if s.Error != "" {
			faults = append(faults, name+": "+s.Error)
		}
		for _, m := range s.Silent {
			faults = append(faults, name+": "+m.Address+" is silent: "+m.Error)
		}
	}
	c.table(rows)
	for _, fault := range faults {
		fmt.Fprintln(c.out, say.Printable(fault))
	}
	c.printView()
	return nil
}

// storeCells returns what an instance says of a store.
func storeCells(s *adminapi.Store) []string {
	cells := []string{s.Instance, s.Name, "", s.Breaker, "", "", "", "", shell.Words(s.Zones)}
	if s.Answers != nil {
		cells[2] = map[bool]string{true: "yes", false: "no"}[*s.Answers]
		if !*s.Answers && s.Breaker == "closed" {
			cells[3] = "failing" // the calls that failed were too few to open it
		}
	}
	if s.Latency != nil && s.Latency.Count > 0 {
		cells[4], cells[5] = duration.Seconds(s.Latency.P50), duration.Seconds(s.Latency.P99)
	}
	if s.Instances > 0 {
		cells[6] = strconv.Itoa(s.Instances)
	}
	if s.Keys != nil {
		cells[7] = strconv.FormatInt(*s.Keys, 10)
	}
	return cells
}
