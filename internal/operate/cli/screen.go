package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// textWidth is the width to which text is wrapped without a terminal.
const textWidth = 80

// screen is where a command prints, and how.
type screen struct {
	out, err io.Writer
	json     bool
	width    int       // of a terminal; 0 without one
	terminal bool      // a person sees what is printed
	waits    io.Writer // where a person sees what a command waits for; nil: nowhere
	flags    string    // the flag that names the instance, for a shell; empty for the usual one
}

// newScreen returns the screen of a command. Without a terminal nothing is cut, because a program reads
// the output or a person keeps it.
func newScreen(cmd *cobra.Command) *screen {
	s := &screen{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	s.json, _ = cmd.Flags().GetBool("json")
	if s.terminal = isTerminal(s.out); isTerminal(s.err) {
		s.waits = s.err
	}
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

func (s *screen) printJSON(value any) error {
	e := json.NewEncoder(s.out)
	e.SetIndent("", "\t")
	e.SetEscapeHTML(false) // people copy names of changes, such as "5 -> 6"
	return e.Encode(value)
}

// say prints a sentence.
func (s *screen) say(format string, args ...any) {
	for _, line := range say.Wrap("", "", fmt.Sprintf(format, args...), cmp.Or(s.width, textWidth)) {
		fmt.Fprintln(s.out, line)
	}
}

const columnGap = "  "

// table prints rows of cells in columns, below a header, with a dash in empty cells. Columns that nothing is in are left out.
func (s *screen) table(rows [][]string) {
	filled := make([][]string, len(rows))
	for i, header := range rows[0] {
		if len(rows) > 1 && !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" }) {
			continue
		}
		for j, row := range rows {
			cell := cmp.Or(row[i], "-")
			if i < len(row)-1 && (header == "KEY" || header == "STORE") {
				cell = s.short(cell)
			}
			filled[j] = append(filled[j], cell)
		}
	}
	width := widths(filled)
	for _, row := range filled {
		fmt.Fprintln(s.out, s.line(row, width))
	}
}

const usualKey = len("255.255.255.255")

// short cuts a text of any length before other columns. In a terminal it is cut in the middle, as texts often start alike.
func (s *screen) short(text string) string {
	if s.width == 0 {
		return text
	}
	return say.CutMiddle(text, max(usualKey, s.width/4))
}

// widths returns the width of each column.
func widths(rows [][]string) (width []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	return width
}

// line puts cells into columns of these widths. A cell that is wider than its column shifts the next ones, which take that up as
// soon as they have room. What does not fit into the terminal is cut off.
func (s *screen) line(cells []string, width []int) string {
	var b strings.Builder
	at, end := 0, 0 // the width of the line, and where the column ends
	for i, cell := range cells {
		cell = say.Printable(cell)
		if s.width > 0 {
			if at >= s.width {
				break
			}
			cell = say.Cut(cell, s.width-at)
		}
		at += utf8.RuneCountInString(cell)
		b.WriteString(cell)
		if i == len(cells)-1 {
			break
		}
		end += width[i]
		gap := max(0, end-at) + len(columnGap)
		b.WriteString(strings.Repeat(" ", gap))
		at, end = at+gap, end+len(columnGap)
	}
	return strings.TrimRight(b.String(), " ")
}

// details prints rows of a name and a text, which is wrapped at the width of the terminal.
func (s *screen) details(rows [][]string) {
	names := widths(rows)[0]
	indent := strings.Repeat(" ", names+len(columnGap))
	for _, row := range rows {
		first := fmt.Sprintf("%-*s%s", names, say.Printable(row[0]), columnGap)
		for _, line := range say.Wrap(first, indent, row[1], s.width) {
			fmt.Fprintln(s.out, line)
		}
	}
}

// formatDeadline returns a time, given in seconds from now.
func formatDeadline(seconds float64) string {
	at, layout := time.Now().Add(time.Duration(seconds*float64(time.Second))), time.TimeOnly
	if at.YearDay() != time.Now().YearDay() || seconds > 24*3600 {
		layout = time.DateTime
	}
	return at.Format(layout) + " (in " + duration.Seconds(seconds) + ")"
}

// enumerate returns one name or several, behind what they are.
func enumerate(what string, names []string) string {
	if len(names) > 1 {
		what += "s"
	}
	return what + " " + strings.Join(names, ", ")
}

// inParentheses returns a text to put behind another one.
func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// words returns a name as words.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }
