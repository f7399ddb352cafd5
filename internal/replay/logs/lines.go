package logs

import (
	"bufio"
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
	*bufio.Reader
	long   []byte // a line that is longer than the buffer
	number int64  // of the last line
}

func newLines(from io.Reader) *lines {
	return &lines{Reader: bufio.NewReaderSize(from, sample)}
}

// next returns the next line without its end. A line that is too long is cut, with errTooLong. At the
// end of the stream it returns io.EOF, or what went wrong.
func (l *lines) next() ([]byte, error) {
	line, err := l.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = l.long[:0]
		for err == bufio.ErrBufferFull {
			if len(l.long) <= longestLine {
				l.long = append(l.long, line...)
			}
			line, err = l.ReadSlice('\n')
		}
		line = append(l.long, line...)
	}
	if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
		return nil, err
	}
	l.number++
	if len(line) > longestLine {
		return line, errTooLong
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), nil
}
