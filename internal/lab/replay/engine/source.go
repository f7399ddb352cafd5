package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
)

const (
	// disorder is how much later than others a line of a log may be written: a log has requests in the
	// order in which they have ended.
	disorder = time.Minute

	// longest is what is believed of durations: a single one must not put a whole log behind others.
	longest = time.Hour

	// maxHeld bounds the records that are held to put them in order, times the logs.
	maxHeld = 1 << 14
)

// source is a log.
type source struct {
	name   string
	reader *logs.Reader
	file   *os.File // nil for the standard input; then closing it does nothing
	newest int64    // when the latest request of all records so far has ended; the end of time if the log is over
}

// held is a record that waits for earlier ones.
type held struct {
	logs.Record
	start  int64 // in microseconds since 1970
	source *source
}

// merged has the records of several logs. Its time is the queue in which they come into the order in which the requests began.
type merged struct {
	clock.Timeline
	sources []*source
	waiting int // records in the queue
}

// openAll opens all logs.
func openAll(o *replay.Options, read logs.Options) (_ *merged, err error) {
	m := new(merged)
	for _, name := range o.Logs {
		s, from := &source{name: name, newest: math.MinInt64 / 2}, o.Input
		m.sources = append(m.sources, s)
		if name == "-" {
			s.name = "standard input"
		} else {
			s.file, err = os.Open(name)
			from = s.file
		}
		if err == nil {
			s.reader, err = logs.Open(s.name, from, read)
		}
		if err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

func (m *merged) close() {
	for _, s := range m.sources {
		_ = s.file.Close()
	}
}

// each calls a function for each record.
func (m *merged) each(f func(*held)) error {
	for {
		behind := m.behind()
		if behind.newest == math.MaxInt64 {
			m.Finish()
			return nil
		}
		if err := m.fill(behind, f); err != nil {
			return err
		}
		if m.waiting > maxHeld*len(m.sources) {
			m.Step()
		}
		m.MoveTo(m.behind().newest - disorder.Microseconds())
	}
}

// behind returns the log that was read the least far.
func (m *merged) behind() *source {
	return slices.MinFunc(m.sources, func(a, b *source) int { return cmp.Compare(a.newest, b.newest) })
}

// fill reads a record, and puts it into the queue.
func (m *merged) fill(s *source, f func(*held)) error {
	h := &held{source: s}
	switch err := s.reader.Next(&h.Record); {
	case errors.Is(err, io.EOF):
		s.newest = math.MaxInt64
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", s.name, err)
	}
	h.start = h.Start.UnixMicro()
	s.newest = max(s.newest, h.start+min(h.Duration, longest).Microseconds())
	m.waiting++
	m.Plan(h.start, func() {
		m.waiting--
		f(h)
	})
	return nil
}

// sum adds what was read, and returns the formats of the logs.
func (m *merged) sum(r *replay.Result) (formats []*logs.Format) {
	for _, s := range m.sources {
		r.Lines, r.NotUnderstood, r.NoRequests = r.Lines+s.reader.Lines, r.NotUnderstood+s.reader.NotUnderstood, r.NoRequests+s.reader.NoRequests
		if r.FirstBad == nil {
			r.FirstBad = s.reader.First
		}
		formats = append(formats, s.reader.Format())
		r.Logs = append(r.Logs, replay.Log{Name: s.name, Format: s.reader.Format().Name, Lines: s.reader.Lines})
	}
	return formats
}
