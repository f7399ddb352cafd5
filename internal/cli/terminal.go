package cli

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// fitTerminal sets the width of tables, and whether to use colors. Without a terminal nothing is cut
// and there is no color, because a program reads the output or a person keeps it.
func (e *endpoint) fitTerminal(cmd *cobra.Command) {
	file, ok := e.out.(*os.File)
	isTerminal := ok && term.IsTerminal(int(file.Fd()))
	plain, _ := cmd.Flags().GetBool("no-color")
	e.color = isTerminal && !plain && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if wide, _ := cmd.Flags().GetBool("wide"); wide {
		return
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		e.width = n
	} else if isTerminal {
		e.width, _, _ = term.GetSize(int(file.Fd()))
	}
}
