package logs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// Reader reads the records of one log. It is for one goroutine.
type Reader struct {
	Lines         int64    // that were read
	NoRequests    int64    // of these, which were understood, and are not about requests
	NotUnderstood int64    // of these
	First         []string // the first three that were not understood, with the reason, printable

	name   string
	lines  *bufio.Scanner
	parser parser
}

// Open prepares to read a log: it finds out how the log is compressed and which format its lines
// have. The name is for errors. An empty log has no records, and is no error.
func Open(name string, from io.Reader, o Options) (*Reader, error) {
	l, err := unpacked(name, from)
	if err != nil {
		return nil, err
	}
	begin, err := l.Peek(sample)
	if err != nil && !errors.Is(err, io.EOF) && len(begin) == 0 {
		return nil, fmt.Errorf("%s: %w", name, whole(err))
	}
	if rest, ok := bytes.CutPrefix(begin, []byte(bom)); ok {
		begin = rest
		l.Discard(len(bom)) //nolint:errcheck // they are there
	}
	if err := isText(name, begin); err != nil {
		return nil, err
	}
	p, err := choose(name, bytes.TrimLeft(begin, "\r\n\t "), o)
	if err != nil {
		return nil, err
	}
	return &Reader{name: name, lines: newLines(l), parser: p}, nil
}

// Format returns the format of the log, as the lines until now have it.
func (r *Reader) Format() *Format { return r.parser.format() }

// Next reads the next record. After the last one it returns [io.EOF]. Lines without a record are counted.
func (r *Reader) Next(to *Record) error {
	for r.lines.Scan() {
		r.Lines++
		line, err := r.lines.Bytes(), errNoRequest
		if text := unwrap(string(line)); strings.TrimSpace(text) != "" {
			err = r.parser.parse(text, to)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoRequest):
			r.NoRequests++
		default:
			r.reject(line, err)
		}
	}
	if err := r.lines.Err(); err != nil {
		return fmt.Errorf("after line %d: %w", r.Lines, whole(err))
	}
	return io.EOF
}

func (r *Reader) reject(line []byte, why error) {
	const shown = 3
	if r.NotUnderstood++; r.NotUnderstood <= shown {
		r.First = append(r.First, say.Printable(fmt.Sprintf("%s:%d: %v: ", r.name, r.Lines, why))+quote(line))
	}
}

// unwrap returns a line without what Docker's driver json-file puts around it.
func unwrap(line string) string {
	var outer struct{ Log string }
	if strings.HasPrefix(line, `{"log":"`) && json.Unmarshal([]byte(line), &outer) == nil && outer.Log != "" {
		return strings.TrimRight(outer.Log, "\r\n")
	}
	return line
}

// quote returns the beginning of a line, printable.
func quote(line []byte) string {
	const most = 200
	return say.Cut(say.Printable(string(line[:min(len(line), most*utf8.UTFMax)])), most)
}
