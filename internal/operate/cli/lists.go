package cli

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
)

func bansCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, zone []string) error { return c.list("bans", zone) })
}

func overridesCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, zone []string) error { return c.list("overrides", zone) })
}

// fills says of a list what would fill it.
var fills = map[string]string{
	"bans":      "A zone bans with its option ban, and you do with 'caddy rate-limit ban <zone> <key>'.",
	"overrides": "'caddy rate-limit set <zone> <key> 100/1m' makes one.",
}

// list prints the bans or the overrides of a zone, or of all zones: what ends first comes first. With --json it prints one list
// for each zone.
func (c *instance) list(name string, zone []string) error {
	bans := name == "bans"
	var lists []adminapi.List
	query := url.Values{"zone": zone, "n": {"100000"}}
	if _, err := c.fetch(http.MethodGet, "overrides", query, nil, &lists); err != nil {
		return err
	}
	for i := range lists {
		lists[i].Keys = slices.DeleteFunc(lists[i].Keys, func(l adminapi.Listed) bool {
			return bans && l.Kind != adminapi.KindBanned || !bans && l.By == adminapi.ByRefusals
		})
	}
	if c.json {
		return c.printJSON(lists)
	}
	type row struct {
		ends  float64 // in minutes from now
		cells []string
	}
	var rows []row
	for _, of := range lists {
		for i := range of.Keys {
			ends := math.Inf(1)
			if l := &of.Keys[i]; !l.Until.IsZero() {
				ends = math.Floor(time.Until(l.Until).Minutes())
			}
			rows = append(rows, row{ends, listCells(of.Zone, &of.Keys[i])})
		}
	}
	if len(rows) == 0 {
		fmt.Fprintf(c.out, "There are no %s.\n", name)
		if len(zone) == 0 {
			c.say("%s", fills[name])
		}
		return nil
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.ends, b.ends) })
	all := [][]string{{"ZONE", "KEY", "BY", "OVERRIDE"}}
	for _, r := range rows {
		if !bans { // all are of operators
			r.cells[2] = ""
		}
		all = append(all, r.cells)
	}
	c.table(all)
	return nil
}

// listCells returns the row of a key in a list. It says whether that has no effect, and of a network, how many requests it has
// decided.
func listCells(zone string, l *adminapi.Listed) []string {
	override, key := l.Override, shell.ShowKey(l.KeyText)
	override.Network = "" // which is the key
	text := describeOverride(&override)
	if l.Network != "" {
		text += fmt.Sprintf(", %d requests", l.Requests)
	}
	if l.DryRun {
		text = "dry run: " + text
	}
	if l.Unknown {
		key = "(only its hash is known: " + l.Key + ")"
	}
	return []string{shell.Word(zone), key, strings.ReplaceAll(l.By, adminapi.ByOverride, "operator"), text}
}
