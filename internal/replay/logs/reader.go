package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Reader reads the records of one log. It is for one goroutine.
type Reader struct {
	name   string
	lines  *lines
	parser parser
	as     Format

	bad   int64
	first *Bad
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
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if rest, ok := bytes.CutPrefix(begin, []byte(bom)); ok {
		begin = rest
		l.Discard(len(bom)) //nolint:errcheck // they are there
	}
	if err := text(name, begin); err != nil {
		return nil, err
	}
	r := &Reader{name: name, lines: l}
	if len(bytes.TrimSpace(begin)) == 0 && (o.Format == "" || o.Format == "auto") && o.LogFormat == "" {
		o.Format = formats[0].name
	}
	if r.parser, err = choose(name, begin, o); err != nil {
		return nil, err
	}
	r.as = r.parser.format()
	return r, nil
}

// Format returns the format of the log, as its first lines have it.
func (r *Reader) Format() *Format { return &r.as }

// Lines returns how many lines were read, with those that were not understood.
func (r *Reader) Lines() int64 { return r.lines.number }

// Bytes returns how many bytes of lines were read, after decompression.
func (r *Reader) Bytes() int64 { return r.lines.read }

// NotUnderstood returns how many lines were not understood, and the first of them.
func (r *Reader) NotUnderstood() (n int64, first *Bad) { return r.bad, r.first }

// Next reads the next record. After the last one it returns [io.EOF]. Lines that are not understood
// are counted; lines that are not about requests are passed over.
func (r *Reader) Next(to *Record) error {
	for {
		line, err := r.lines.next()
		switch {
		case err == errTooLong:
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return fmt.Errorf("after line %d: %w", r.lines.number, err)
		case len(bytes.TrimSpace(line)) == 0:
			continue
		default:
			err = r.parser.parse(string(line), to)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoRequest):
		default:
			r.reject(line, err)
		}
	}
}

func (r *Reader) reject(line []byte, why error) {
	r.bad++
	if r.first == nil {
		r.first = &Bad{Log: r.name, Line: r.lines.number, Text: quote(line), Why: why.Error()}
	}
}

// quote returns the beginning of a line, printable.
func quote(line []byte) string {
	const most = 200
	text := strings.ToValidUTF8(string(line[:min(len(line), most)]), "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text))
}
