package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func bansCommand() *cobra.Command {
	return listCommand("bans", "Lists the keys that are banned", `
Lists the keys of a zone, or of all zones, that are banned: because they were refused
too often, or by an operator.
`, []string{"ZONE", "BY", "ENDS", "KEY"}, func(l *adminapi.Listed) []string {
		ends := formatBanEnd(l.EndsIn)
		return []string{strings.ReplaceAll(l.By, adminapi.ByOverride, "operator"), ends + formatNote(&l.Override)}
	})
}

func overridesCommand() *cobra.Command {
	return listCommand("overrides", "Lists the keys that have an override", `
Lists the keys of a zone, or of all zones, that have a limit of their own, or that an
operator has exempted or banned.
`, []string{"ZONE", "OVERRIDE", "KEY"}, func(l *adminapi.Listed) []string { return []string{describeOverride(&l.Override)} })
}

// listCommand returns a command that prints all pages of a list.
func listCommand(name, short, long string, head []string, cells func(*adminapi.Listed) []string) *cobra.Command {
	return &cobra.Command{
		Use: name + " [<zone>]", Short: short, Long: long,
		Example:           "  caddy rate-limit " + name,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := newEndpoint(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				asJSON := e.json
				e.json = false
				var zones []adminapi.Zone
				if _, err := e.read("zones", nil, &zones); err != nil {
					return err
				}
				for _, z := range zones {
					args = append(args, z.Name)
				}
				e.json = asJSON
			}
			return e.list(args, name, head, cells)
		},
	}
}

// list prints lists of zones. With --json it prints each page.
func (e *endpoint) list(zones []string, name string, head []string, cells func(*adminapi.Listed) []string) error {
	rows := [][]string{head}
	for _, zone := range zones {
		for cursor := ""; ; {
			query := url.Values{"n": {"1000"}}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			var page adminapi.List
			asJSON := e.json
			e.json = false
			_, err := e.read(zonePath(zone, "/"+name), query, &page)
			if e.json = asJSON; err != nil {
				return err
			}
			for i := range page.Keys {
				l := &page.Keys[i]
				key := showKey(l.KeyText)
				if l.Unknown {
					key = "(only its hash is known: " + l.Key + ")"
				}
				rows = append(rows, append(append([]string{shellWord(zone)}, cells(l)...), key))
			}
			if e.json {
				if err := e.printJSON(page); err != nil {
					return err
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	if e.json {
		return nil
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(e.out, "None.")
		return err
	}
	return e.table(rows)
}

func (e *endpoint) printJSON(value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintln(e.out, string(text))
	}
	return err
}
