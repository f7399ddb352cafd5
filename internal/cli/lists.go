package cli

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/why"
)

func bansCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, zones []string) error { return c.list("bans", zones) })
}

func overridesCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, zones []string) error { return c.list("overrides", zones) })
}

// fills says of a list what would fill it.
var fills = map[string]string{
	"bans":      "A zone bans with its option ban, and you do with 'caddy rate-limit ban <zone> <key>'.",
	"overrides": "'caddy rate-limit set <zone> <key> 100/1m' makes one.",
}

// list prints a list of these zones, or of all zones: what ends first comes first. With --json it prints one list of pages.
func (c *instance) list(name string, zones []string) error {
	lists, err := c.fetchLists(name, zones)
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(lists)
	}
	type listed struct {
		ends float64 // in minutes from now
		row  []string
	}
	var all []listed
	for _, of := range lists {
		for _, l := range of.Keys {
			ends := math.Inf(1)
			if l.EndsIn > 0 {
				ends = math.Floor(l.EndsIn / 60)
			}
			all = append(all, listed{ends, listRow(name, of.Zone, &l)})
		}
	}
	if len(all) == 0 {
		fmt.Fprintf(c.out, "There are no %s.\n", name)
		if len(zones) == 0 {
			c.say("%s", fills[name])
		}
		return nil
	}
	slices.SortStableFunc(all, func(a, b listed) int { return cmp.Compare(a.ends, b.ends) })
	rows := [][]string{{"ZONE", "BY", "ENDS", "OVERRIDE", "KEY"}}
	for _, l := range all {
		rows = append(rows, l.row)
	}
	c.table(rows)
	return nil
}

// listRow returns the row of a key in a list. It says whether that has no effect, and of a network, how many requests it has
// decided.
func listRow(name, zone string, l *adminapi.Listed) []string {
	row := []string{shell.Word(zone), "", "", "", shell.ShowKey(l.KeyText)}
	if l.Unknown {
		row[4] = "(only its hash is known: " + l.Key + ")"
	}
	effect := ""
	if l.Network != "" {
		effect = fmt.Sprintf(", %d requests", l.Requests)
	}
	if l.DryRun {
		effect += ", dry run"
	}
	if name == "bans" {
		ends := "when unbanned"
		if l.EndsIn > 0 {
			ends = formatDeadline(l.EndsIn)
		}
		row[1], row[2] = strings.ReplaceAll(l.By, adminapi.ByOverride, "operator"), ends+effect+why.Note(&l.Override)
		return row
	}
	override := l.Override
	override.Network = ""
	row[3] = describeOverride(&override) + effect
	return row
}

// fetchLists returns a list of these zones, or of all zones: one for each zone, with all pages.
func (c *instance) fetchLists(name string, zones []string) ([]adminapi.List, error) {
	if len(zones) == 0 {
		all, err := c.allZones()
		if err != nil {
			return nil, err
		}
		for _, z := range all {
			zones = append(zones, z.Name)
		}
	}
	lists := make([]adminapi.List, len(zones))
	for i, zone := range zones {
		lists[i] = adminapi.List{Zone: zone, Keys: []adminapi.Listed{}}
		for query := (url.Values{"n": {"1000"}}); ; {
			var page adminapi.List
			if _, err := c.fetch(http.MethodGet, zonePath(zone, "/"+name), query, nil, &page); err != nil {
				return nil, err
			}
			lists[i].Keys = append(lists[i].Keys, page.Keys...)
			if page.Next == "" {
				break
			}
			query.Set("cursor", page.Next)
		}
	}
	return lists, nil
}
