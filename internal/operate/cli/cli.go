// Package cli has the command caddy rate-limit. It asks the admin API of a running Caddy, or tries out a config that does
// not run.
package cli

import (
	_ "embed"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
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
