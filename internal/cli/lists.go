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

// list is a command that lists keys of a zone, or of all zones. If there are none, fills says what would fill it.
type list struct {
	name, fills string
	head        []string
	cells       func(*adminapi.Listed) []string
}

func bansCommand(cmd *cobra.Command) {
	l := &list{
		name: "bans", fills: "A zone bans with its option ban, and you do with 'caddy rate-limit ban <zone> <key>'.",
		head: []string{"ZONE", "BY", "ENDS", "KEY"},
		cells: func(l *adminapi.Listed) []string {
			ends := "when unbanned"
			if l.EndsIn > 0 {
				ends = formatDeadline(l.EndsIn)
			}
			return []string{strings.ReplaceAll(l.By, adminapi.ByOverride, "operator"), ends + ofList(l) + why.Note(&l.Override)}
		},
	}
	asks(cmd, l.show)
}

func overridesCommand(cmd *cobra.Command) {
	l := &list{
		name: "overrides", fills: "'caddy rate-limit set <zone> <key> 100/1m' makes one.", head: []string{"ZONE", "OVERRIDE", "KEY"},
		cells: func(l *adminapi.Listed) []string {
			text := l.Override
			text.Network = ""
			return []string{describeOverride(&text) + ofList(l)}
		},
	}
	asks(cmd, l.show)
}

// ofList says what is to know of an override in a list: whether it has no effect, and of one of a network,
// how many requests it has decided.
func ofList(l *adminapi.Listed) (text string) {
	if l.Network != "" {
		text = fmt.Sprintf(", %d requests", l.Requests)
	}
	if l.DryRun {
		text += ", dry run"
	}
	return text
}

// show prints lists of zones, or of all zones, in the order of their ends. With --json it prints one list of pages.
func (l *list) show(c *instance, zones []string) error {
	lists, err := l.fetch(c, zones)
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(lists)
	}
	type row struct {
		ends  float64 // in minutes from now
		cells []string
	}
	var found []row
	for _, of := range lists {
		for _, k := range of.Keys {
			key, ends := shell.ShowKey(k.KeyText), math.Inf(1)
			if k.Unknown {
				key = "(only its hash is known: " + k.Key + ")"
			}
			if k.EndsIn > 0 {
				ends = math.Floor(k.EndsIn / 60)
			}
			found = append(found, row{ends, slices.Concat([]string{shell.Word(of.Zone)}, l.cells(&k), []string{key})})
		}
	}
	if len(found) == 0 {
		fmt.Fprintf(c.out, "There are no %s.\n", l.name)
		if len(zones) == 0 {
			c.say("%s", l.fills)
		}
		return nil
	}
	slices.SortStableFunc(found, func(a, b row) int { return cmp.Compare(a.ends, b.ends) })
	rows := [][]string{l.head}
	for _, row := range found {
		rows = append(rows, row.cells)
	}
	c.table(rows)
	return nil
}

// fetch returns the lists of these zones, or of all zones: one for each zone, with all pages.
func (l *list) fetch(c *instance, zones []string) ([]adminapi.List, error) {
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
			if _, err := c.fetch(http.MethodGet, zonePath(zone, "/"+l.name), query, nil, &page); err != nil {
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
