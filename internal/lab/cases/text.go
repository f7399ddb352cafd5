package cases

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// Width is the widest line of the report, where texts can be broken.
const Width = 80

// WriteText writes a line for each case, with what does not hold of it, and one for each change that no case notices.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	for i := range r.Cases {
		r.Cases[i].write(&b, width)
	}
	for _, change := range r.Changes {
		switch {
		case change.FoundBy != "":
		case change.Accepted != "":
			wrap(&b, "      ", change.Change+": accepted: "+change.Accepted, width)
		default:
			wrap(&b, "MISS  ", change.Change+": no case fails", width)
		}
	}
	fmt.Fprintf(&b, "%s, %d failed, in %s\n", say.Plural(len(r.Cases), "case"), r.Failed, r.Took.Round(time.Millisecond))
	if n := len(r.Changes); n > 0 {
		found, accepted := r.Noticed()
		fmt.Fprintf(&b, "%s of the config, %d noticed (%d %%), %d accepted, %d missed\n",
			say.Plural(n, "change"), found, 100*found/n, accepted, n-found-accepted)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes a line for a case, and what does not hold of it.
func (r *Result) write(b *strings.Builder, width int) {
	if len(r.Failures) == 0 {
		fmt.Fprintf(b, "ok    %s\n", say.Printable(r.Name))
	} else {
		fmt.Fprintf(b, "FAIL  %s\n", say.Printable(r.Name))
	}
	for i := range r.Failures {
		r.Failures[i].write(b, r.File, width)
	}
}

// write writes a failure.
func (f *Failure) write(b *strings.Builder, file string, width int) {
	at := fmt.Sprintf("%s:%d", file, f.Line)
	if f.Step != "" {
		at += ": " + f.Step
	}
	wrap(b, "      ", at, width)
	if f.Expected != "" {
		wrap(b, "        expected  ", f.Expected, width)
	}
	wrap(b, "        got       ", f.Got, width)
	for _, text := range f.State {
		wrap(b, "        ", text, width)
	}
}

// wrap writes a text behind a beginning, in as many lines as it takes. A width of 0 breaks no line.
func wrap(b *strings.Builder, beginning, text string, width int) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(beginning)+2)
	b.WriteString(strings.Join(say.Wrap(beginning, indent, text, width), "\n") + "\n")
}

// Noticed returns how many changes a case notices, and how many others are accepted.
func (r *Report) Noticed() (found, accepted int) {
	for _, c := range r.Changes {
		switch {
		case c.FoundBy != "":
			found++
		case c.Accepted != "":
			accepted++
		}
	}
	return found, accepted
}
