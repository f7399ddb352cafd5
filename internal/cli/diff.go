package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

func diffCommand(cmd *cobra.Command) {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return errors.New("two configs are needed: write 'caddy rate-limit diff Caddyfile.old Caddyfile'")
		}
		if slices.Contains(args, "-") {
			return errors.New("the configs and the logs must be files, because the logs are read twice")
		}
		return nil
	}
	markdown := cmd.Flags().Bool("markdown", false, "Print Markdown")
	exitCode := cmd.Flags().Bool("exit-code", false, "End with 2 if the new config can refuse requests that passed before, or something cannot be judged")
	weaker := cmd.Flags().Bool("weaker", false, "With --exit-code: also if a limit is weakened or removed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		adapter, _ := cmd.Flags().GetString("adapter")
		var configs [2][]byte
		for i := range configs {
			var err error
			if configs[i], err = readConfig(args[i], adapter); err != nil {
				return err
			}
		}
		c, err := compare.Configs(configs[0], configs[1], &replay.Options{Logs: args[2:], Format: "auto"})
		if err != nil {
			return err
		}
		d := document{newScreen(cmd), *markdown}
		if d.json {
			err = d.printJSON(c)
		} else {
			d.write(c)
		}
		if err == nil && *exitCode && (refusesMore(c) || c.Stores || len(c.Unjudged) > 0 || *weaker && refusesLess(c)) {
			return endWith(cmd, exitDiffers)
		}
		return err
	}
}

// exitDiffers is the exit code of diff --exit-code.
const exitDiffers = 2

// refusesMore reports whether the new config can refuse requests that passed before.
func refusesMore(c *adminapi.Comparison) bool {
	return c.Log != nil && c.Log.More > 0 || slices.ContainsFunc(c.Zones, func(z adminapi.ZoneDiff) bool { return z.Stricter })
}

// refusesLess reports whether the new config can let requests pass that were refused before.
func refusesLess(c *adminapi.Comparison) bool {
	return c.Log != nil && c.Log.Less > 0 || slices.ContainsFunc(c.Zones, func(z adminapi.ZoneDiff) bool { return z.Weaker })
}

// countsInWords says what happens to the counts of keys.
var countsInWords = map[string]string{
	adminapi.CountsKept: "kept", adminapi.CountsPartly: "kept in some plans, and begin again from zero in others", adminapi.CountsAnew: "begin again from zero: each client has its whole limit",
}

// differences says what has changed in a zone, each with a word in front.
func differences(z *adminapi.ZoneDiff) (rows [][]string) {
	switch z.Kind {
	case adminapi.ZoneNew:
		rows = append(rows, []string{"new", z.Is})
	case adminapi.ZoneGone:
		rows = append(rows, []string{"gone", "was " + z.Was})
	}
	for _, c := range z.Changes {
		rows = append(rows, []string{"changed", c.Text})
	}
	for _, text := range z.Warnings {
		rows = append(rows, []string{"warning", text})
	}
	if z.Stricter {
		rows = append(rows, []string{"refuses", "it can refuse requests that passed before"})
	}
	if z.Weaker {
		rows = append(rows, []string{"allows", "it can let requests pass that it refused before"})
	}
	if z.Kind == adminapi.ZoneChanged && z.Counts != "" {
		rows = append(rows, []string{"counts", countsInWords[z.Counts]})
	}
	return rows
}

const (
	sameZones   = "No zone differs."
	otherStores = "The stores differ, so all counts may begin again from zero."
	notJudged   = "This differs too where requests come to a limit, and may decide which of them it counts. Test it with cases or a log:"
)

// logInWords says in a sentence what the difference means for a log.
func logInWords(l *adminapi.LogDiff) string {
	return fmt.Sprintf("Of %s by %s, the old config refuses %d and the new one %d. It refuses %s more often, and %s less often.",
		plural(l.Requests, "request"), plural(l.Clients, "client"), l.Was, l.Is, plural(l.More, "client"), plural(l.Less, "client"))
}

// document is where a comparison is written: a terminal, or Markdown for a pull request.
type document struct {
	*screen
	markdown bool
}

// write writes what differs between two configs.
func (d document) write(c *adminapi.Comparison) {
	if d.markdown {
		fmt.Fprint(d.out, "### Rate limits\n\n")
	}
	if len(c.Zones)+len(c.Unjudged) == 0 {
		fmt.Fprintln(d.out, sameZones)
	}
	for i := range c.Zones {
		d.zone(i == 0, &c.Zones[i])
	}
	if c.Stores {
		d.text(otherStores)
	}
	if len(c.Unjudged) > 0 {
		d.text(notJudged)
		d.list(c.Unjudged)
	}
	if c.Log == nil {
		return
	}
	d.text(logInWords(c.Log))
	if lines := picture(c.Log); lines != nil {
		fence := map[bool]string{true: "```\n"}[d.markdown]
		fmt.Fprintf(d.out, "\n%s%s\n%s", fence, strings.Join(lines, "\n"), fence)
	}
	for _, list := range [][]adminapi.ClientDiff{c.Log.MoreOf, c.Log.LessOf} {
		if len(list) > 0 {
			fmt.Fprintln(d.out)
			d.clients(list)
		}
	}
}

// zone writes what has changed in a zone.
func (d document) zone(first bool, z *adminapi.ZoneDiff) {
	rows := differences(z)
	if !d.markdown {
		if !first {
			fmt.Fprintln(d.out)
		}
		d.details(append([][]string{{"zone", shell.Word(z.Zone)}}, rows...))
		return
	}
	fmt.Fprintf(d.out, "- **zone %s**\n", inMarkdown(z.Zone))
	for _, row := range rows {
		name := row[0]
		if name == "warning" {
			name = "**warning**"
		}
		fmt.Fprintf(d.out, "  - %s: %s\n", name, inMarkdown(row[1]))
	}
}

// text writes a paragraph.
func (d document) text(text string) {
	fmt.Fprintln(d.out)
	if d.markdown {
		fmt.Fprintln(d.out, text)
	} else {
		d.say("%s", text)
	}
}

func (d document) list(names []string) {
	if d.markdown {
		fmt.Fprintln(d.out)
	}
	for _, name := range names {
		if d.markdown {
			fmt.Fprintln(d.out, "- "+inMarkdown(name))
		} else {
			fmt.Fprintln(d.out, "  "+replay.Printable(name))
		}
	}
}

// clients writes a table of clients.
func (d document) clients(list []adminapi.ClientDiff) {
	rows := [][]string{{"CLIENT", "REQUESTS", "REFUSED BEFORE", "REFUSED NOW"}}
	for _, c := range list {
		client := shell.Word(c.Client)
		if d.markdown {
			client = strings.ReplaceAll(inMarkdown(c.Client), "|", `\|`) // which ends a cell even in code
		}
		rows = append(rows, []string{client, fmt.Sprint(c.Requests), fmt.Sprint(c.Was), fmt.Sprint(c.Is)})
	}
	if !d.markdown {
		d.table(rows)
		return
	}
	for i, row := range rows {
		text := "| " + strings.Join(row, " | ") + " |\n"
		if i == 0 {
			text = strings.ToLower(text) + "|---|---:|---:|---:|\n"
		}
		fmt.Fprint(d.out, text)
	}
}

// inMarkdown writes a text as code, so that nothing of it is markup.
func inMarkdown(text string) string {
	text = replay.Printable(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 || strings.TrimSpace(text) == "" {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// bars are the columns of a picture, from few to many. None is a dot.
var bars = []rune("▁▂▃▄▅▆▇█")

// picture draws how many requests two configs refuse over time, with one scale. It is empty if they refuse none.
func picture(l *adminapi.LogDiff) (lines []string) {
	most := max(slices.Max(append(l.WasOver, 0)), slices.Max(append(l.IsOver, 0)))
	if most == 0 {
		return nil
	}
	row := func(values []int64) string {
		var b strings.Builder
		for _, n := range values {
			if n == 0 {
				b.WriteRune('·')
			} else {
				b.WriteRune(bars[(n*int64(len(bars))-1)/most])
			}
		}
		return b.String()
	}
	return []string{
		"refused before  " + row(l.WasOver),
		"refused now     " + row(l.IsOver),
		fmt.Sprintf("from %s UTC, %s each, █ is %d", l.Begin.UTC().Format(time.DateTime), duration.Format(time.Duration(l.Step)*time.Second), most),
	}
}
