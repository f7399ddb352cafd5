package engine

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

const (
	// disorder is how much later than others a line of a log may be written: a log has requests in the
	// order in which they have ended.
	disorder = time.Minute

	// maxHeld bounds the records of a log that are held to put them in order.
	maxHeld = 1 << 16
)

// source has the records of one log in the order in which the requests began.
type source struct {
	name   string
	reader *logs.Reader
	file   *os.File // nil for the standard input
	size   int64
	read   counter

	held   inOrder
	count  uint64
	newest int64 // when the latest request of all records so far has ended
	over   bool
}

// held is a record that waits for earlier ones.
type held struct {
	start int64 // in microseconds since 1970
	nth   uint64
	*logs.Record
}

// inOrder is a heap of records, the earliest first.
type inOrder []held

func (o inOrder) Len() int      { return len(o) }
func (o inOrder) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o inOrder) Less(i, j int) bool {
	return o[i].start < o[j].start || o[i].start == o[j].start && o[i].nth < o[j].nth
}
func (o *inOrder) Push(h any) { *o = append(*o, h.(held)) }
func (o *inOrder) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// counter counts the bytes that are read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (n int, err error) {
	n, err = c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// openSource opens a log.
func openSource(name string, o *replay.Options, read logs.Options) (*source, error) {
	s := &source{name: name, newest: math.MinInt64}
	if name == "-" {
		s.name, s.read.Reader = "standard input", o.Input
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		s.file, s.read.Reader = file, file
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			s.size = info.Size()
		}
	}
	var err error
	if s.reader, err = logs.Open(s.name, &s.read, read); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *source) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// fill reads until the earliest record is known, or the log is over.
func (s *source) fill() error {
	for !s.over && !s.ready() {
		r := new(logs.Record)
		switch err := s.reader.Next(r); {
		case errors.Is(err, io.EOF):
			s.over = true
		case err != nil:
			return fmt.Errorf("reading %s: %w", s.name, err)
		default:
			s.count++
			start := r.Start.UnixMicro()
			s.newest = max(s.newest, start+r.Duration.Microseconds())
			heap.Push(&s.held, held{start, s.count, r})
		}
	}
	return nil
}

// ready reports whether no line to come can have an earlier request than the earliest that is held.
func (s *source) ready() bool {
	return len(s.held) > 0 && (s.held[0].start < s.newest-disorder.Microseconds() || len(s.held) >= maxHeld)
}

// merged has the records of several logs in the order in which the requests began.
type merged struct {
	sources []*source
	total   int64 // bytes of all logs; 0 if that is not known
	open    []*source
	last    *source // that next has returned a record of
}

// openAll opens all logs.
func openAll(o *replay.Options, read logs.Options) (*merged, error) {
	m, known := new(merged), true
	for _, name := range o.Logs {
		s, err := openSource(name, o, read)
		if err != nil {
			m.close()
			return nil, err
		}
		m.sources = append(m.sources, s)
		m.total += s.size
		known = known && s.file != nil && s.size > 0
	}
	if !known {
		m.total = 0
	}
	for _, s := range m.sources {
		if err := s.fill(); err != nil {
			m.close()
			return nil, err
		}
		if len(s.held) > 0 {
			m.open = append(m.open, s)
		}
	}
	return m, nil
}

func (m *merged) close() {
	for _, s := range m.sources {
		s.close()
	}
}

// next returns the next record and the log that it is from; nil after the last one.
func (m *merged) next() (*logs.Record, *source, error) {
	if m.last != nil {
		if err := m.last.fill(); err != nil {
			return nil, nil, err
		}
		if len(m.last.held) == 0 {
			m.open = slices.DeleteFunc(m.open, func(s *source) bool { return s == m.last })
		}
		m.last = nil
	}
	if len(m.open) == 0 {
		return nil, nil, nil
	}
	first := m.open[0]
	for _, s := range m.open[1:] {
		if s.held[0].start < first.held[0].start {
			first = s
		}
	}
	m.last = first
	return heap.Pop(&first.held).(held).Record, first, nil
}

// bytes returns how many bytes of the logs were read.
func (m *merged) bytes() (n int64) {
	for _, s := range m.sources {
		n += s.read.n
	}
	return n
}
