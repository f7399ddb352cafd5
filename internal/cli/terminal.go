package cli

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
)

// screen is where a command prints, and how.
type screen struct {
	out, err io.Writer
	json     bool
	width    int  // of tables; 0 without a limit
	fixed    bool // the width does not follow the terminal
	height   int  // of the terminal; 0 if it is not known
	color    bool
	terminal bool     // a person sees what is printed
	file     *os.File // the terminal, if out is one
	flags    string   // the flags that named the instances, for a shell
}

// newScreen returns the screen of a command. Without a terminal nothing is cut and there is no color,
// because a program reads the output or a person keeps it.
func newScreen(cmd *cobra.Command) *screen {
	s := &screen{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	s.json, _ = cmd.Flags().GetBool("json")
	s.file = terminalOf(cmd)
	noColor, _ := cmd.Flags().GetBool("no-color")
	s.terminal = s.file != nil
	s.color = s.terminal && !noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if wide, _ := cmd.Flags().GetBool("wide"); wide {
		s.fixed = true
	} else if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.width, s.fixed = n, true
	}
	s.measure()
	return s
}
