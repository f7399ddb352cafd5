// Package cli has the command caddy rate-limit. It asks the admin API of a running Caddy, or tries out a config that does
// not run.
package cli

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// help has the texts of all commands: of the whole, of keys, and then of each command in its group. A command has a line with
// its arguments, one that sums it up, the help, and examples.
//
//go:embed help.txt
var help string

// commands add to each command of the help its flags, and what it does.
var commands = map[string]func(*cobra.Command){
	"zones": zonesCommand, "top": topCommand, "watch": watchCommand, "stores": storesCommand,
	"bans": bansCommand, "overrides": overridesCommand, "page": pageCommand,
	"get": getCommand, "explain": explainCommand, "doctor": doctorCommand,
	"reset": resetCommand, "set": setCommand, "ban": banCommand, "unban": unbanCommand,
	"replay": replayCommand, "diff": diffCommand, "test": testCommand,
}

func init() {
	long, texts, _ := strings.Cut(help, "\n# ")
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "rate-limit",
		Usage: "<command>",
		Short: "Shows and changes what a running Caddy limits",
		Long:  long,
		CobraFunc: func(cmd *cobra.Command) {
			flags := cmd.PersistentFlags()
			flags.StringSlice("address", nil, "The address of the admin endpoint, if not the one in the config; several, with commas, are asked one after the other")
			flags.StringP("config", "c", "", "Configuration file with the address of the admin endpoint")
			flags.StringP("adapter", "a", "", "Name of the config adapter for that file")
			flags.Bool("json", false, "Print JSON, for programs")
			// Caddy's own template ends with the address of pages that do not know this command.
			cmd.SetHelpTemplate(cmd.HelpTemplate() + "\nFull documentation is available at:\n" + documentation + "\n")
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			addCommands(cmd, texts)
		},
	})
}

// addCommands adds the commands of the help.
func addCommands(root *cobra.Command, texts string) {
	key, texts, _ := strings.Cut(texts, "\n# ")
	name, ofKeys, _ := strings.Cut(key, "\n")
	for group := range strings.SplitSeq(texts, "\n# ") {
		title, texts, _ := strings.Cut(group, "\n\n## ")
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for text := range strings.SplitSeq(texts, "\n## ") {
			use, text, _ := strings.Cut(text, "\n")
			short, text, _ := strings.Cut(text, "\n")
			long, examples, _ := strings.Cut(text, "\nExamples:\n")
			cmd := &cobra.Command{
				GroupID: title, Use: use, Short: short,
				Long:    strings.Replace(long, name+"\n", ofKeys, 1),
				Example: strings.TrimRight(examples, "\n"),
			}
			takes(cmd)
			commands[cmd.Name()](cmd)
			root.AddCommand(cmd)
		}
	}
}

const documentation = "https://github.com/seed-161337e5/caddyratelimit/blob/main/docs/cli.md"

// This file checks arguments, with errors in the words of the command line.

// takes makes a command check its arguments by the line that says what they are.
func takes(cmd *cobra.Command) {
	_, all, _ := strings.Cut(cmd.Use, " ")
	first, _, _ := strings.Cut(strings.TrimPrefix(all, "<"), ">")
	most := strings.Count(all, "<")
	if strings.Contains(all, "...") {
		most = math.MaxInt
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && strings.HasPrefix(all, "<"):
			return fmt.Errorf("the %s is missing: write %s", first, cmd.UseLine())
		case len(args) > most:
			return fmt.Errorf("%s takes at most %s, got %d: quote those with spaces", cmd.Name(), say.Plural(int64(most), "argument"), len(args))
		}
		return nil
	}
}

// knownCommand returns an error for an unknown command, with the one that was probably meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", args[0], strings.Join(similar, " or "))
	}
	return fmt.Errorf("unknown command %q: the commands are %s", args[0], strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
}
