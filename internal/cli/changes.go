package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func changesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "Lists who has changed what is limited, and when",
		Long: `
Lists the last changes: reloads with what they have changed, overrides, bans and
resets, of all instances that share a store. Without a shared store, those of this
instance since it began. A change is by the name in the certificate of the client at
the admin endpoint, or else by its address.
`,
		Example: "  caddy rate-limit changes\n  caddy rate-limit changes -n 1000 --json",
		Args:    cobra.NoArgs,
	}
	n := cmd.Flags().IntP("number", "n", 20, "How many changes to list, up to 1000")
	cmd.RunE = onFleet(func(f *fleet, _ []string) error { return f.changes(*n) })
	return cmd
}

// changes prints the last changes, each once.
func (f *fleet) changes(n int) error {
	answers := fetchAll[adminapi.Changes](f, "changes", url.Values{"n": {strconv.Itoa(n)}})
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	var all []adminapi.Change
	for _, a := range good {
		all = append(all, a.value.Changes...)
		if a.value.Incomplete != "" {
			fmt.Fprintf(f.err, "%s%s\n", f.mark(a.of), a.value.Incomplete)
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(f.out, "There are no changes. Reloads that change limits, overrides, bans and resets are listed here.")
		return err
	}
	rows := [][]string{{"AT", "ACTION", byColumn, "ZONE", keyColumn, whatColumn}}
	for _, c := range adminapi.LastChanges(n, all) {
		key := "-"
		if c.Key != nil {
			key = showKey(*c.Key)
		}
		what := c.What
		if c.Note != "" {
			what += ", note: " + shellWord(c.Note)
		}
		zone := "-"
		if c.Zone != "" {
			zone = shellWord(c.Zone)
		}
		rows = append(rows, []string{c.At.Local().Format(time.DateTime), inLine(c.Action), inLine(cmp.Or(c.By, c.Caddy)), zone, key, orDash(inLine(what))})
	}
	return errors.Join(f.tableOfChanges(rows), err)
}

// tableOfChanges prints changes. Where the terminal is too narrow for what has changed, that is below its line.
func (f *fleet) tableOfChanges(rows [][]string) error {
	if f.fits(rows) {
		return f.table(rows)
	}
	what := make([]string, len(rows))
	for i, row := range rows {
		what[i] = row[len(row)-1]
	}
	var lines bytes.Buffer
	narrow := *f.screen
	narrow.out = &lines
	if err := narrow.table(only(map[string]bool{whatColumn: false}, rows)); err != nil {
		return err
	}
	i := 0
	for line := range strings.Lines(lines.String()) {
		fmt.Fprintln(f.out, strings.TrimRight(line, " \n"))
		if i > 0 && what[i] != "-" {
			for _, part := range wrapped(what[i], f.width-len(columnGap)) {
				fmt.Fprintln(f.out, columnGap+part)
			}
		}
		i++
	}
	return nil
}

// whatColumn is the header of what has changed.
const whatColumn = "WHAT"

// inLine makes a text of somebody else one line that a terminal does not obey.
func inLine(text string) string { return strings.ReplaceAll(printable(text), "\n", " ") }
