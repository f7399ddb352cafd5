package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// screen is where a command prints, and how.
type screen struct {
	out, err io.Writer
	json     bool
	width    int // of tables; 0 without a limit
	color    bool
	terminal bool      // a person sees what is printed
	waits    io.Writer // where a person sees what a command waits for; nil: nowhere
	flags    string    // the flags that named the instances, for a shell
}

// newScreen returns the screen of a command. Without a terminal nothing is cut and there is no color,
// because a program reads the output or a person keeps it.
func newScreen(cmd *cobra.Command) *screen {
	s := &screen{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	s.json, _ = cmd.Flags().GetBool("json")
	if s.terminal = isTerminal(s.out); isTerminal(s.err) {
		s.waits = s.err
	}
	s.color = s.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.width = n
	} else if s.terminal {
		s.width, _, _ = term.GetSize(int(s.out.(*os.File).Fd())) // 0 if it is not known
	}
	return s
}

// isTerminal reports whether a person sees what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// quiet is how long a command may say nothing.
const quiet = time.Second

// waiting tells a person what the command waits for, if that takes longer than a moment. The function that it returns ends
// that.
func (s *screen) waiting(what string) (ended func()) {
	if s.waits == nil {
		return func() {}
	}
	timer := time.AfterFunc(quiet, func() { fmt.Fprintf(s.waits, "Waiting for %s ...\n", what) })
	return func() { timer.Stop() }
}
