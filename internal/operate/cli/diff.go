package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

func diffCommand(cmd *cobra.Command) {
	exitCode := cmd.Flags().Bool("exit-code", false, "End with 2 if a zone differs, or something on the way to one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		input := slices.Index(args, "-")
		switch {
		case len(args) < 2:
			return errors.New("two configs are needed: write 'caddy rate-limit diff Caddyfile.old Caddyfile'")
		case input >= 0 && slices.Contains(args[input+1:], "-"):
			return errors.New("the standard input can be read once: name files, and - for one of them at most")
		}
		adapter, _ := cmd.Flags().GetString("adapter")
		var configs [2][]byte
		for i := range configs {
			var err error
			if configs[i], err = readConfig(args[i], adapter); err != nil {
				return err
			}
		}
		c, err := compare.Configs(configs[0], configs[1], &replay.Options{Logs: args[2:], Input: cmd.InOrStdin(), Format: "auto"})
		if err != nil {
			return err
		}
		s := newScreen(cmd)
		if s.json {
			err = s.printJSON(c)
		} else {
			s.printComparison(c)
		}
		if err == nil && *exitCode && len(c.Zones)+len(c.Unjudged) > 0 {
			return endWith(cmd, exitDiffers)
		}
		return err
	}
}

// exitDiffers is the exit code of diff --exit-code.
const exitDiffers = 2

// printComparison prints what differs between two configs.
func (s *screen) printComparison(c *adminapi.Comparison) {
	if len(c.Zones)+len(c.Unjudged) == 0 {
		fmt.Fprintln(s.out, "No zone differs.")
	}
	for i := range c.Zones {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		z := &c.Zones[i]
		rows := [][]string{{"zone", shell.Word(z.Zone)}}
		for _, text := range z.Changes {
			rows = append(rows, []string{z.Kind, text})
		}
		for _, text := range z.Warnings {
			rows = append(rows, []string{"warning", text})
		}
		s.details(rows)
	}
	if len(c.Unjudged) > 0 {
		fmt.Fprintln(s.out)
		s.say("This differs too where requests come to a limit, and may decide which of them it counts. Test it with cases or a log:")
		for _, what := range c.Unjudged {
			fmt.Fprintln(s.out, "  "+say.Printable(what))
		}
	}
	if c.Log != nil {
		s.printLog(c.Log)
	}
}

// printLog prints what the difference means for a log.
func (s *screen) printLog(l *adminapi.LogDiff) {
	fmt.Fprintln(s.out)
	s.say("Of %s by %s, the old config refuses %d and the new one %d. It refuses %s more often, and %s less often.",
		say.Plural(l.Requests, "request"), say.Plural(l.Clients, "client"), l.Was, l.Is, say.Plural(l.More, "client"), say.Plural(l.Less, "client"))
	if len(l.Unknown) > 0 {
		fmt.Fprintln(s.out)
		s.say("Not known from the logs:")
		for _, what := range l.Unknown {
			s.say("- %s", what)
		}
	}
	for _, list := range [][]adminapi.ClientDiff{l.MoreOf, l.LessOf} {
		rows := [][]string{{"CLIENT", "REQUESTS", "REFUSED BEFORE", "REFUSED NOW"}}
		for _, c := range list {
			rows = append(rows, []string{shell.Word(c.Client), fmt.Sprint(c.Requests), fmt.Sprint(c.Was), fmt.Sprint(c.Is)})
		}
		if len(list) > 0 {
			fmt.Fprintln(s.out)
			s.table(rows)
		}
	}
}
