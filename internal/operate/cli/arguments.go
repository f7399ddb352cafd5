package cli

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

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
