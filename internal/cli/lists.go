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

func bansCommand() *cobra.Command {
	return listCommand("bans", "Lists the keys that are banned", `
Lists the keys of a zone, or of all zones, that are banned: because they were refused
too often, or by an operator. "dry run" marks those that refuse nothing.
The bans that end first come first.
`, "A zone bans with its option ban, and you do with 'caddy rate-limit ban <zone> <key>'.", []string{"ZONE", "BY", "ENDS", "KEY"}, func(l *adminapi.Listed) []string {
		ends := "when unbanned"
		if l.EndsIn > 0 {
			ends = formatDeadline(l.EndsIn)
		}
		ends += ofList(l)
		return []string{strings.ReplaceAll(l.By, adminapi.ByOverride, "operator"), ends + why.Note(&l.Override)}
	})
}

func overridesCommand() *cobra.Command {
	return listCommand("overrides", "Lists the keys that have an override", `
Lists the keys of a zone, or of all zones, that have a limit of their own, or that an
operator has exempted or banned.
`, "'caddy rate-limit set <zone> <key> 100/1m' makes one.", []string{"ZONE", "OVERRIDE", "KEY"}, func(l *adminapi.Listed) []string {
		text := l.Override
		text.Network = ""
		return []string{describeOverride(&text) + ofList(l)}
	})
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

// listCommand returns a command that prints all pages of a list. If that is empty, fills says what would fill it.
func listCommand(name, short, long, fills string, head []string, cells func(*adminapi.Listed) []string) *cobra.Command {
	return &cobra.Command{
		Use: name + " [<zone>]", Short: short, Long: long,
		Example:           "  caddy rate-limit " + name,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
		RunE:              onFleet(func(f *fleet, args []string) error { return f.list(args, name, fills, head, cells) }),
	}
}

// list prints lists of zones, or of all zones, in the order of their ends. With --json it prints one list of pages.
func (f *fleet) list(zones []string, name, fills string, head []string, cells func(*adminapi.Listed) []string) error {
	lists, err := f.asked.lists(zones, name)
	if err != nil {
		return err
	}
	if f.json {
		return f.printJSON(lists)
	}
	type row struct {
		zone string
		adminapi.Listed
	}
	var found []row
	for _, list := range lists {
		for _, l := range list.Keys {
			found = append(found, row{list.Zone, l})
		}
	}
	if len(found) == 0 {
		fmt.Fprintf(f.out, "There are no %s.\n", name)
		if len(zones) == 0 {
			f.say("%s", fills)
		}
		return nil
	}
	slices.SortStableFunc(found, func(a, b row) int { return cmp.Compare(endOf(&a.Listed), endOf(&b.Listed)) })
	rows := [][]string{head}
	for _, l := range found {
		key := shell.ShowKey(l.KeyText)
		if l.Unknown {
			key = "(only its hash is known: " + l.Key + ")"
		}
		rows = append(rows, slices.Concat([]string{shell.Word(l.zone)}, cells(&l.Listed), []string{key}))
	}
	return f.table(rows)
}

// endOf returns when an override ends, in minutes from now.
func endOf(l *adminapi.Listed) float64 {
	if l.EndsIn == 0 {
		return math.Inf(1)
	}
	return math.Floor(l.EndsIn / 60)
}

// lists returns the lists of these zones, or of all zones: one for each zone, with all pages.
func (e *endpoint) lists(zones []string, name string) ([]adminapi.List, error) {
	if len(zones) == 0 {
		var err error
		if zones, err = e.zoneNames(); err != nil {
			return nil, err
		}
	}
	lists := make([]adminapi.List, len(zones))
	for i, zone := range zones {
		lists[i] = adminapi.List{Zone: zone, Keys: []adminapi.Listed{}}
		for cursor := ""; ; {
			query := url.Values{"n": {"1000"}}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			var page adminapi.List
			if _, err := e.fetch(http.MethodGet, zonePath(zone, "/"+name), query, nil, &page); err != nil {
				return nil, err
			}
			lists[i].Keys = append(lists[i].Keys, page.Keys...)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return lists, nil
}
