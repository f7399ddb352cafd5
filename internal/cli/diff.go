package cli

import (
	"errors"
	"fmt"
	"io"
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

func diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff <old config> <new config> [<log>...]",
		Short: "Says what changes between two configs, and for which clients of a log",
		Long: `
Compares the zones of two configs: limits that are lowered or raised, other keys and
options, zones that are new or gone, what happens to the counts when the new config is
loaded, and what is wrong with it that was right before. It names what else differs
where requests come to a limit, such as routes, matchers and maps, which it cannot
judge. With access logs it also says which clients would be refused more often, or less
often, as 'caddy rate-limit replay' decides. It needs no running Caddy, and asks no
store.

--markdown prints what fits into the comment of a pull request.

With --exit-code, the exit code is 2 if the new config can refuse requests that
passed before: a zone that is new, a lower limit, another key, a dry run that ends, or
more refusals in the logs; and if something differs that it cannot judge. With --weaker
it is also 2 if the new config can let requests pass that were refused before. It is 0
otherwise, and 1 if there is no answer.
`,
		Example: "  caddy rate-limit diff Caddyfile.old Caddyfile\n" +
			"  caddy rate-limit diff --markdown Caddyfile.old Caddyfile access.log",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("two configs are needed: write 'caddy rate-limit diff Caddyfile.old Caddyfile'")
			}
			if slices.Contains(args, "-") {
				return errors.New("the configs and the logs must be files, because the logs are read twice")
			}
			return nil
		},
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
		s := newScreen(cmd)
		switch {
		case s.json:
			err = s.printJSON(c)
		case *markdown:
			err = writeMarkdown(s.out, c)
		default:
			s.printComparison(c)
		}
		if err == nil && *exitCode && (refusesMore(c) || c.Stores || len(c.Unjudged) > 0 || *weaker && refusesLess(c)) {
			return endWith(cmd, exitDiffers)
		}
		return err
	}
	return cmd
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

// printComparison prints what differs between two configs.
func (s *screen) printComparison(c *adminapi.Comparison) {
	if len(c.Zones)+len(c.Unjudged) == 0 {
		fmt.Fprintln(s.out, sameZones)
	}
	for i := range c.Zones {
		z := &c.Zones[i]
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		s.paragraphs(append([][]string{{"zone", shell.Word(z.Zone)}}, differences(z)...))
	}
	if c.Stores {
		s.say(otherStores)
	}
	if len(c.Unjudged) > 0 {
		s.say("%s\n  %s", strings.Join(s.lines(notJudged), "\n"), strings.Join(c.Unjudged, "\n  "))
	}
	if c.Log == nil {
		return
	}
	s.say("%s", strings.Join(s.lines(logInWords(c.Log)), "\n"))
	if lines := picture(c.Log); lines != nil {
		s.say("%s", strings.Join(lines, "\n"))
	}
	for _, list := range [][]adminapi.ClientDiff{c.Log.MoreOf, c.Log.LessOf} {
		if len(list) > 0 {
			fmt.Fprintln(s.out)
			_ = s.table(clientRows(list))
		}
	}
}

// lines breaks a text at the width of the terminal.
func (s *screen) lines(text string) []string {
	if s.width == 0 {
		return []string{text}
	}
	return wrapped(text, s.width)
}

// clientRows is a table of clients.
func clientRows(list []adminapi.ClientDiff) [][]string {
	rows := [][]string{{"CLIENT", "REQUESTS", "REFUSED BEFORE", "REFUSED NOW"}}
	for _, c := range list {
		rows = append(rows, []string{shell.Word(c.Client), fmt.Sprint(c.Requests), fmt.Sprint(c.Was), fmt.Sprint(c.Is)})
	}
	return rows
}

// writeMarkdown writes what differs between two configs for a pull request.
func writeMarkdown(w io.Writer, c *adminapi.Comparison) error {
	var b strings.Builder
	b.WriteString("### Rate limits\n\n")
	if len(c.Zones)+len(c.Unjudged) == 0 {
		b.WriteString(sameZones + "\n")
	}
	for i := range c.Zones {
		z := &c.Zones[i]
		fmt.Fprintf(&b, "- **zone %s**\n", inMarkdown(z.Zone))
		for _, row := range differences(z) {
			name := row[0]
			if name == "warning" {
				name = "**warning**"
			}
			fmt.Fprintf(&b, "  - %s: %s\n", name, inMarkdown(row[1]))
		}
	}
	if c.Stores {
		b.WriteString("\n" + otherStores + "\n")
	}
	if len(c.Unjudged) > 0 {
		b.WriteString("\n" + notJudged + "\n\n")
		for _, what := range c.Unjudged {
			b.WriteString("- " + inMarkdown(what) + "\n")
		}
	}
	if c.Log != nil {
		b.WriteString("\n" + logInWords(c.Log) + "\n")
		if lines := picture(c.Log); lines != nil {
			b.WriteString("\n```\n" + strings.Join(lines, "\n") + "\n```\n")
		}
		for _, list := range [][]adminapi.ClientDiff{c.Log.MoreOf, c.Log.LessOf} {
			if len(list) == 0 {
				continue
			}
			b.WriteString("\n| client | requests | refused before | refused now |\n|---|---:|---:|---:|\n")
			for _, of := range list {
				fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", inCell(of.Client), of.Requests, of.Was, of.Is)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inMarkdown writes a text as code, so that nothing of it is markup.
func inMarkdown(text string) string {
	text = inLine(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 || strings.TrimSpace(text) == "" {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// inCell is inMarkdown for the cell of a table, which a | ends even in code.
func inCell(text string) string { return strings.ReplaceAll(inMarkdown(text), "|", `\|`) }

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
