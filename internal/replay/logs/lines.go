package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// sample is how much of a log is looked at to know its format.
	sample = 64 << 10

	// longestLine is more than a server logs of a request: headers are bounded by 1 MB.
	longestLine = 8 << 20
)

var errTooLong = fmt.Errorf("the line is longer than %d MiB", longestLine>>20)

// lines cuts a stream into lines. A line is valid until the next one is read.
type lines struct {
	from     io.Reader
	buffer   []byte
	at       int // where the next line begins in buffer
	err      error
	read     int64 // bytes of lines
	number   int64 // of the last line
	skipping bool  // the rest of a line that is too long
}

func newLines(from io.Reader) *lines {
	return &lines{from: from, buffer: make([]byte, 0, sample)}
}

// fill reads more, behind what is there.
func (l *lines) fill() {
	if l.at > 0 {
		l.buffer = l.buffer[:copy(l.buffer, l.buffer[l.at:])]
		l.at = 0
	}
	if len(l.buffer) == cap(l.buffer) {
		l.buffer = append(make([]byte, 0, 2*cap(l.buffer)), l.buffer...)
	}
	for tries := 0; tries < 100; tries++ {
		n, err := l.from.Read(l.buffer[len(l.buffer):cap(l.buffer)])
		l.buffer = l.buffer[:len(l.buffer)+n]
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// peek returns the beginning of the stream: so much that it can be judged, and at least one line.
func (l *lines) peek() []byte {
	for l.err == nil && (len(l.buffer) < sample || len(l.buffer) < longestLine && bytes.IndexByte(l.buffer, '\n') < 0) {
		l.fill()
	}
	return l.buffer[l.at:]
}

// next returns the next line without its end. A line that is too long is cut, with errTooLong. At the
// end of the stream it returns io.EOF, or what went wrong.
func (l *lines) next() ([]byte, error) {
	searched := 0
	for {
		rest := l.buffer[l.at:]
		if i := bytes.IndexByte(rest[searched:], '\n'); i >= 0 {
			l.at += searched + i + 1
			switch line, ok := l.took(rest[:searched+i], 1); {
			case ok && len(line) > longestLine:
				return line, errTooLong
			case ok:
				return line, nil
			}
			searched = 0
			continue
		}
		searched = len(rest)
		switch {
		case searched > longestLine:
			l.at = len(l.buffer)
			if line, ok := l.took(rest, 0); ok {
				l.skipping = true
				return line, errTooLong
			}
			searched = 0
		case l.err != nil:
			l.at = len(l.buffer)
			if searched > 0 && errors.Is(l.err, io.EOF) {
				if line, ok := l.took(rest, 0); ok {
					return line, nil
				}
			}
			return nil, l.err
		}
		l.fill()
	}
}

// took counts a line. It is false for the rest of a line that was too long.
func (l *lines) took(line []byte, end int64) (text []byte, ok bool) {
	l.read += int64(len(line)) + end
	if l.skipping {
		l.skipping = end == 0
		return nil, false
	}
	l.number++
	return bytes.TrimSuffix(line, []byte{'\r'}), true
}
