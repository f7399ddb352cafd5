package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	watchFlag = "watch"

	// watchPause is the time between two answers with --watch. Instances report as often.
	watchPause = 2 * time.Second
)

// watchable gives a command what it does, and a flag to do that again and again.
func watchable(cmd *cobra.Command, do func(f *fleet, args []string) error) *cobra.Command {
	watch := cmd.Flags().Bool(watchFlag, false, "Show it again every two seconds, until it is interrupted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*watch {
			return onFleet(do)(cmd, args)
		}
		f, err := newFleet(cmd)
		if err != nil {
			return err
		}
		return f.repeat(cmd.Context(), watchPause, func(f *fleet) error { return do(f, args) })
	}
	return cmd
}

// repeat shows an answer again and again, until ctx is done. It gives up if the first one fails, or as many in a row
// as a reload or a restart takes.
func (f *fleet) repeat(ctx context.Context, pause time.Duration, show func(*fleet) error) error {
	for shown, failed := false, 0; ; {
		var text bytes.Buffer
		err := show(f.writingTo(&text))
		if failed++; text.Len() > 0 {
			failed = 0
		}
		if err != nil && (!shown && failed > 0 || failed > maxReconnects) {
			return err
		}
		if err != nil {
			fmt.Fprintf(&text, "\n%v\n", err)
		}
		if _, err := fmt.Fprint(f.out, f.frame(text.String(), time.Now(), !shown)); err != nil {
			return err
		}
		shown, f.waits = true, nil // it would be in the way
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if ctx.Err() != nil { // both may be ready
			return nil
		}
	}
}

// writingTo returns a fleet that asks as f does, and has asked nothing yet.
func (f *fleet) writingTo(out *bytes.Buffer) *fleet {
	s := *f.screen
	s.out = out
	s.measure()
	again := *f
	again.screen, again.caddys = &s, slices.Clone(f.caddys)
	for i, e := range f.caddys {
		again.caddys[i] = &endpoint{screen: &s, address: e.address}
		if e == f.asked {
			again.asked = again.caddys[i]
		}
	}
	return &again
}

// The escape sequences that move the cursor to the top, and clear the rest of a line and of the screen.
const toTop, clearLine, clearRest = "\x1b[H", "\x1b[K", "\x1b[J"

// frame returns what replaces the answer before. In a terminal that is the whole screen, and what has no room is left
// out. Elsewhere answers follow each other.
func (s *screen) frame(text string, at time.Time, first bool) string {
	if s.json {
		return text
	}
	text += "\n" + at.Format(time.TimeOnly) + "\n"
	switch {
	case !s.terminal && first:
		return text
	case !s.terminal:
		return "\n" + text
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if most := s.height - 1; s.height > 1 && len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("\u2026 %d lines more", len(lines)-most+1))
	}
	return toTop + strings.ReplaceAll(strings.Join(lines, "")+"\n", "\n", clearLine+"\n") + clearRest
}

// measure finds out how large the terminal is, unless that is given.
func (s *screen) measure() {
	if s.file == nil {
		return
	}
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil {
		return
	}
	if s.height = height; !s.fixed {
		s.width = width
	}
}

// terminalOf returns the terminal that a command writes to, or nil.
func terminalOf(cmd *cobra.Command) *os.File {
	if isTerminal(cmd.OutOrStdout()) {
		return cmd.OutOrStdout().(*os.File)
	}
	return nil
}
