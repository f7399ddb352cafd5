package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
)

// This file checks arguments, with errors in the words of the command line.

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

// needsZone returns an error without arguments, which says what to give.
func needsZone(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return fmt.Errorf("the zone is missing: write %s; 'caddy rate-limit zones' lists the zones", cmd.UseLine())
}

// needsKey returns an error without arguments or a flag that name the key.
func needsKey(cmd *cobra.Command, args []string) error {
	if len(args) > 0 || cmd.Flags().Changed("key-base64") {
		return nil
	}
	return errors.New("the key is missing: write 'caddy rate-limit get 203.0.113.7' for a key in all zones, " +
		"or 'caddy rate-limit get clients 203.0.113.7' for a key of one zone")
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
