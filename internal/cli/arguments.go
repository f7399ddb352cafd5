package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
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
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q: the commands are %s", args[0], strings.Join(names, ", "))
}

// checkExclusive returns an error if more than one of these flags is set.
func checkExclusive(cmd *cobra.Command, names ...string) error {
	var set []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			set = append(set, "--"+name)
		}
	}
	if len(set) > 1 {
		return fmt.Errorf("%s exclude each other", strings.Join(set, " and "))
	}
	return nil
}

// longFlag is a duration of a flag, from a second up.
type longFlag string

func (f *longFlag) String() string { return string(*f) }
func (f *longFlag) Type() string   { return "duration" }

// Set implements pflag.Value.
func (f *longFlag) Set(text string) error {
	d, err := caddy.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write one such as 90s, 2h or 7d", text)
	}
	if d < time.Second {
		return fmt.Errorf("it must be at least 1s, got %s", text)
	}
	*f = longFlag(text)
	return nil
}

// maxCompletion bounds how long a shell waits for names.
const maxCompletion = 2 * time.Second

// complete returns what there is in the zones of all instances, if they answer soon.
func complete(cmd *cobra.Command, find func(adminapi.Zone) []string) ([]string, cobra.ShellCompDirective) {
	found := make(chan []string, 1)
	go func() {
		var names []string
		all, _ := newInstances(cmd)
		for _, c := range all {
			zones, _ := c.allZones()
			for _, z := range zones {
				names = append(names, find(z)...)
			}
		}
		slices.Sort(names)
		found <- slices.Compact(names)
	}()
	select {
	case names := <-found:
		return names, cobra.ShellCompDirectiveNoFileComp
	case <-time.After(maxCompletion):
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeZones completes the first argument with the names of zones.
func completeZones(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return complete(cmd, func(z adminapi.Zone) []string { return []string{z.Name} })
}

// completePlans completes a flag with the plans of the zone, or of all zones if none is named yet.
func completePlans(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, func(z adminapi.Zone) []string {
		if len(args) > 0 && z.Name != args[0] {
			return nil
		}
		return z.Plans
	})
}

var errNoKey = errors.New("the key is missing: write 'caddy rate-limit get 203.0.113.7' for a key in all zones, " +
	"or 'caddy rate-limit get clients 203.0.113.7' for a key of one zone")
