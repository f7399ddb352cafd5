package logs

import (
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
	name   string
	lines  *lines
	parser parser

	other int64
	bad   int64
	first []string
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
	return &Reader{name: name, lines: l, parser: p}, nil
}

// Format returns the format of the log, as the lines until now have it.
func (r *Reader) Format() *Format { return r.parser.format() }

// Lines returns how many lines were read, with those that were not understood.
func (r *Reader) Lines() int64 { return r.lines.number }

// NotUnderstood returns how many lines were not understood, and the first three of them with the reason, printable.
func (r *Reader) NotUnderstood() (n int64, first []string) { return r.bad, r.first }

// NoRequests returns how many lines were understood, and are not about requests.
func (r *Reader) NoRequests() int64 { return r.other }

// Next reads the next record. After the last one it returns [io.EOF]. Lines without a record are counted.
func (r *Reader) Next(to *Record) error {
	for {
		line, err := r.lines.next()
		switch {
		case err == errTooLong:
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return fmt.Errorf("after line %d: %w", r.lines.number, whole(err))
		case len(bytes.TrimSpace(line)) == 0:
			err = errNoRequest
		default:
			err = r.parser.parse(unwrap(string(line)), to)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoRequest):
			r.other++
		default:
			r.reject(line, err)
		}
	}
}

func (r *Reader) reject(line []byte, why error) {
	const shown = 3
	if r.bad++; r.bad <= shown {
		r.first = append(r.first, say.Printable(fmt.Sprintf("%s:%d: %v: ", r.name, r.lines.number, why))+quote(line))
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
