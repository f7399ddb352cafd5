package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
)

func topCommand(cmd *cobra.Command) {
	ofFleet(cmd)
	refused := cmd.Flags().Bool("refused", false, "Sort by refusals, also those of a dry run, and leave out keys without any")
	networks := cmd.Flags().Bool("networks", false, "List networks (/24, IPv6 /48) instead of keys, while somebody looks")
	cmd.MarkFlagsMutuallyExclusive("refused", "networks")
	n := cmd.Flags().IntP("number", "n", 10, "How many keys, at most 1000")
	asks(cmd, func(c *instance, zone []string) error {
		query := url.Values{"zone": zone, "n": {strconv.Itoa(*n)}}
		switch {
		case *networks:
			c.ofFleet = false // each instance counts them for itself
			return c.top("networks", query, *n, "NETWORK", noNetworks)
		case *refused:
			query.Set("by", "refused")
			return c.top("top", query, *n, "KEY", noRefused)
		}
		return c.top("top", query, *n, "KEY", noKeys)
	})
}

// What would fill a list of networks, one of keys, and one of refused keys.
const (
	noNetworks = "There are no networks: no zone has an address in its key, or counting has just begun: ask again in a minute."

	noKeys    = "There are no keys: no zone has counted a request in the last minutes. 'caddy rate-limit explain <url>' says which zones count a request."
	noRefused = "There are no refused keys: no zone has refused a request in the last minutes. Without --refused, all keys are listed."
)

// top prints the most frequent keys or networks of a zone, or of all zones.
func (c *instance) top(path string, query url.Values, n int, column, none string) error {
	refused := query.Has("by")
	var lists []adminapi.Top
	if done, err := c.ask(path, query, &lists); done || err != nil {
		return err
	}
	type key struct {
		zone string
		adminapi.KeyCount
	}
	var keys []key
	since := time.Now()
	for _, list := range lists {
		for _, k := range list.Keys {
			keys = append(keys, key{list.Zone, k})
		}
		if !list.Since.IsZero() && list.Since.Before(since) {
			since = list.Since
		}
	}
	if len(keys) == 0 {
		c.say("%s", none)
		c.printView()
		return nil
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(b.Count(refused), a.Count(refused)) })
	rows := [][]string{{"ZONE", "PLAN", "REQUESTS", "REFUSED", column}}
	for _, k := range keys[:min(n, len(keys))] {
		no := formatCount(k.Refused)
		if k.DryRun && k.Refused > 0 {
			no += " (dry run)"
		}
		rows = append(rows, []string{shell.Word(k.zone), showPlan(k.Plan), formatCount(k.Requests), no, shell.ShowKey(k.KeyText)})
	}
	c.table(rows)
	fmt.Fprintf(c.out, "\nCounted by %s since %s.\n", c.counter(), since.Local().Format(time.TimeOnly))
	c.printView()
	return nil
}

// showPlan returns the name of a plan for a shell, if there is one.
func showPlan(name string) string {
	if name == "" {
		return ""
	}
	return shell.Word(name)
}

func formatCount(n uint64) string { return strconv.FormatUint(n, 10) }
