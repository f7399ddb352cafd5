package logs

import (
	"bufio"
	"io"
)

const (
	// sample is how much of a log is looked at to know its format.
	sample = 64 << 10

	// longestLine is more than a server logs of a request: headers are bounded by 1 MB.
	longestLine = 8 << 20
)

// newLines cuts a stream into lines. Of one that is longer than a server writes, each part counts as a line.
func newLines(from io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(from)
	s.Buffer(make([]byte, sample), 2*longestLine)
	s.Split(func(data []byte, atEnd bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEnd)
		if n == 0 && len(data) >= longestLine {
			return len(data), data, nil
		}
		return n, line, err
	})
	return s
}
