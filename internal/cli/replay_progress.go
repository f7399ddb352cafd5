package cli

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// progress shows how far a replay has come, in one line of a terminal that it writes again and again.
type progress struct {
	file *os.File
	last time.Time
}

// newProgress returns the progress on a terminal; nil if there is none, or if JSON is wanted.
func newProgress(s *screen) *progress {
	file, ok := s.err.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &progress{file: file}
}

const progressEvery = 200 * time.Millisecond

func (p *progress) show(now replay.Progress) {
	if time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	fmt.Fprint(p.file, "\r\x1b[K"+progressLine(now))
}

// done clears the line.
func (p *progress) done() {
	if p != nil && !p.last.IsZero() {
		fmt.Fprint(p.file, "\r\x1b[K")
	}
}

// progressLine says how many lines were read, how fast, and how long the rest will take.
func progressLine(p replay.Progress) string {
	text := replay.Count(p.Lines) + " lines"
	if p.Of > 1 {
		text = fmt.Sprintf("pass %d of %d: %s", p.Pass, p.Of, text)
	}
	seconds := p.Took.Seconds()
	if seconds <= 0 {
		return text
	}
	rate := float64(p.Bytes) / seconds
	text += fmt.Sprintf(", %.0f MB/s", rate/1e6)
	if p.Total > p.Bytes && rate > 0 {
		left := time.Duration(float64(p.Total-p.Bytes) / rate * float64(time.Second))
		text += ", " + left.Round(time.Second).String() + " left"
	}
	return text
}
