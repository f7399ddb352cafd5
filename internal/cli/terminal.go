package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// textWidth is the width to which text is wrapped without a terminal.
const textWidth = 80

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

// wrapped breaks a text into lines of at most this width, at least one. Longer words are cut.
func wrapped(text string, width int) (lines []string) {
	width = max(width, 20)
	line := ""
	for word := range strings.FieldsSeq(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// printable escapes what a terminal would interpret. Errors of servers may have anything in them.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r), r == '\n':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// inLine makes a text of somebody else one line that a terminal does not obey.
func inLine(text string) string { return strings.ReplaceAll(printable(text), "\n", " ") }
