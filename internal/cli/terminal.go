package cli

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// screen is where a command prints, and how.
type screen struct {
	out, err io.Writer
	json     bool
	width    int // of tables; 0 without a limit
	color    bool
	terminal bool   // a person sees what is printed
	flags    string // the flags that named the instances, for a shell
}

// newScreen returns the screen of a command. Without a terminal nothing is cut and there is no color,
// because a program reads the output or a person keeps it.
func newScreen(cmd *cobra.Command) *screen {
	s := &screen{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	s.json, _ = cmd.Flags().GetBool("json")
	file, ok := s.out.(*os.File)
	isTerminal := ok && term.IsTerminal(int(file.Fd()))
	noColor, _ := cmd.Flags().GetBool("no-color")
	s.terminal = isTerminal
	s.color = isTerminal && !noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if wide, _ := cmd.Flags().GetBool("wide"); wide {
		return s
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.width = n
	} else if isTerminal {
		s.width, _, _ = term.GetSize(int(file.Fd()))
	}
	return s
}
