package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// This file checks and completes arguments, with errors in the words of the command line.

// takes makes a command check and complete its arguments, as far as the line with them says what they are.
func takes(cmd *cobra.Command) {
	switch {
	case !strings.Contains(cmd.Use, "<"):
		cmd.Args = cobra.NoArgs
	case strings.Contains(cmd.Use, " <zone>"):
		cmd.Args = needs("zone", "; 'caddy rate-limit zones' lists the zones")
	case !strings.Contains(cmd.Use, "..."):
		cmd.Args = cobra.MaximumNArgs(1)
	}
	if strings.Contains(cmd.Use, "<zone>") {
		cmd.ValidArgsFunction = completeZones
	}
}

// needs returns what fails without arguments, and says what to give and how to find it.
func needs(what, find string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fmt.Errorf("the %s is missing: write %s%s", what, cmd.UseLine(), find)
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

// completeZones completes the first argument with the names of zones.
func completeZones(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := newInstances(cmd)
	for _, c := range all {
		zones, _ := c.allZones()
		for _, z := range zones {
			names = append(names, z.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

var errNoKey = errors.New("the key is missing: write 'caddy rate-limit get 203.0.113.7' for a key in all zones, " +
	"or 'caddy rate-limit get clients 203.0.113.7' for a key of one zone")
