package logs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Reader reads the records of one log. It is for one goroutine.
type Reader struct {
	name   string
	lines  *bufio.Reader
	format Format

	line, bytes, bad int64
	first            *Bad
	buffer           []byte
}

// Open prepares to read a log: it finds out how the log is compressed and which format its lines
// have. The name is for errors.
func Open(name string, from io.Reader, o Options) (*Reader, error) {
	if o.Format != "" && o.Format != "auto" && o.Format != caddyFormat.Name {
		return nil, fmt.Errorf("format must be auto or caddy, got %q", o.Format)
	}
	return &Reader{name: name, lines: bufio.NewReaderSize(from, 64<<10), format: caddyFormat}, nil
}

// Format returns the format of the log.
func (r *Reader) Format() *Format { return &r.format }

// Lines returns how many lines were read, with those that were not understood.
func (r *Reader) Lines() int64 { return r.line }

// Bytes returns how many bytes of lines were read, after decompression.
func (r *Reader) Bytes() int64 { return r.bytes }

// NotUnderstood returns how many lines were not understood, and the first of them.
func (r *Reader) NotUnderstood() (n int64, first *Bad) { return r.bad, r.first }

// Next reads the next record. After the last one it returns [io.EOF]. Lines that are not understood
// are counted; lines that are not about requests are passed over.
func (r *Reader) Next(to *Record) error {
	for {
		line, err := r.readLine()
		if err != nil {
			return err
		}
		to.Reset()
		switch err := parseCaddy(line, to); {
		case err == nil:
			return nil
		case errors.Is(err, errNoRequest):
		default:
			r.reject(line, err)
		}
	}
}

func (r *Reader) readLine() ([]byte, error) {
	r.buffer = r.buffer[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		r.bytes += int64(len(part))
		r.buffer = append(r.buffer, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(r.buffer) > 0:
		case err != nil:
			return nil, err
		}
		r.line++
		return r.buffer, nil
	}
}

const maxQuoted = 200

func (r *Reader) reject(line []byte, why error) {
	r.bad++
	if r.first == nil {
		text := strings.ToValidUTF8(string(line[:min(len(line), maxQuoted)]), "�")
		r.first = &Bad{Log: r.name, Line: r.line, Text: strings.TrimSpace(text), Why: why.Error()}
	}
}
