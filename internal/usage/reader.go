package usage

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Reader reads a cost from the body of a response as it passes, on its own goroutine. It keeps nothing of the body but
// the numbers.
type Reader struct {
	scanner scanner
	last    [MaxFields][]byte // the last value of each term, or its beginning; nil if there was none
	format  format
	events  int64 // how many events of a stream have had objects

	pieces  *io.PipeWriter
	over    chan struct{} // closed when all of the body was read
	failure error         // why not all of it was; after over
}

type format uint8

const (
	unread format = iota
	texts         // of JSON, one after the other
	lines         // the same, of which a single one is a stream too
	eventStream
)

// MaxDecoded is how much of a compressed body is decoded, so that a small body cannot cost much time.
const MaxDecoded = 64 << 20

// NewReader returns a reader for a body of a media type and content codings, as the values of the fields have them. It
// returns nil if such a body has no cost that could be read, and an error if it cannot be decoded. A reader must be closed.
func NewReader(f *Fields, contentType string, contentEncoding ...string) (*Reader, error) {
	format := formatOf(contentType)
	if format == unread {
		return nil, nil
	}
	zipped, err := isGzip(strings.Join(contentEncoding, ","))
	if err != nil {
		return nil, err
	}
	return newReader(f, format, zipped, MaxDecoded), nil
}

func newReader(f *Fields, format format, zipped bool, most int64) *Reader {
	from, to := io.Pipe()
	r := &Reader{format: format, pieces: to, over: make(chan struct{})}
	r.scanner.fields, r.scanner.found = f, r.keep
	go func() {
		defer close(r.over)
		defer from.Close() // what comes then is dropped
		defer func() {
			if reason := recover(); reason != nil { // here no server would catch it
				r.failure = fmt.Errorf("panic: %v", reason)
			}
		}()
		if zipped {
			r.failure = r.readGzip(from, most)
		} else {
			r.failure = r.read(from)
		}
	}()
	return r
}

// ofLines are media types of JSON Lines.
var ofLines = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}

// formatOf returns the format of a media type, whatever its parameters.
func formatOf(contentType string) format {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case name == "text/event-stream":
		return eventStream
	case name == "application/json", strings.HasPrefix(name, "application/") && strings.HasSuffix(name, "+json"):
		return texts
	case slices.Contains(ofLines, name):
		return lines
	}
	return unread
}

// isGzip reports whether content codings, of which only one may not be identity, are gzip.
func isGzip(codings string) (zipped bool, err error) {
	for each := range strings.SplitSeq(strings.ToLower(codings), ",") {
		switch each = strings.TrimSpace(each); {
		case each == "" || each == "identity":
		case zipped || each != "gzip" && each != "x-gzip":
			return false, fmt.Errorf("the coding %.40q cannot be decoded, only gzip", codings)
		default:
			zipped = true
		}
	}
	return zipped, nil
}

// readGzip reads a compressed body up to a size when it is decoded.
func (r *Reader) readGzip(from io.Reader, most int64) error {
	z, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	z.Header = gzip.Header{} // which may be large
	limited := &io.LimitedReader{R: z, N: most + 1}
	if err := r.read(limited); limited.N > 0 {
		return err
	}
	return fmt.Errorf("the body is more than %d bytes when it is decoded", most)
}

// byteOrderMark may be in front of a body.
const byteOrderMark = "\xef\xbb\xbf"

// read reads the body as it was before compression.
func (r *Reader) read(body io.Reader) error {
	from := bufio.NewReader(body)
	if begin, _ := from.Peek(len(byteOrderMark)); string(begin) == byteOrderMark {
		_, _ = from.Discard(len(begin))
	}
	if r.format != eventStream {
		return r.scanner.texts(from)
	}
	e := &event{from: from}
	for e.err == nil {
		r.scanner.objs = 0
		for err := r.scanner.texts(e); err == errFault; {
			if _, end := e.ReadByte(); end != nil { // the rest of the event
				break
			}
		}
		if e.err == nil && r.scanner.objs > 0 {
			r.events++
		}
	}
	return e.err
}

func (r *Reader) keep(term int, token []byte) error {
	r.last[term] = append(r.last[term][:0], token[:min(len(token), maxNumber+1)]...)
	return nil
}

// Write reads the next piece. It never fails.
func (r *Reader) Write(p []byte) (int, error) {
	_, _ = r.pieces.Write(p)
	return len(p), nil
}

// Close ends the body, and waits until all of it is read. It must be called before Cost, Done and Events. It returns an
// error if the body could not be decoded. One that was cut off is no error, because the response may have been.
func (r *Reader) Close() error {
	_ = r.pieces.Close()
	<-r.over
	if r.failure == errFault || errors.Is(r.failure, io.ErrUnexpectedEOF) || errors.Is(r.failure, io.EOF) {
		return nil
	}
	return r.failure
}

// Cost returns the cost by what has been read, whether there was any number, and whether all are numbers of a cost.
func (r *Reader) Cost() (cost int64, found, valid bool) { return r.scanner.fields.sum(&r.last) }

// Done reports whether a stream has come to the event [DONE], with which most backends end it, so that
// nothing is missing if its connection ends then.
func (r *Reader) Done() bool { return r.format == eventStream && r.scanner.done }

// Events returns how many events or lines of a stream have been read. An event without an object does not count. A single
// object of JSON is no stream, unless it is a line.
func (r *Reader) Events() int64 {
	if r.format == lines || r.format == texts && r.scanner.objs > 1 {
		return r.scanner.objs
	}
	return r.events
}

// event has the data of an event of a text/event-stream, and of the next ones. It takes all line ends that the HTML
// standard allows, and data of several lines. The space in front of data and the ends of lines stay, because both are
// space in JSON.
type event struct {
	from   *bufio.Reader
	inData bool  // the line is one of data
	hadCR  bool  // the line before ended with a CR, so that a LF belongs to it
	err    error // of the stream
}

const dataField = "data:"

// ReadByte implements [io.ByteReader]. At the end of an event it returns [io.EOF], and goes on with the next one.
func (e *event) ReadByte() (byte, error) {
	for !e.inData {
		if !e.beginLine() {
			return 0, io.EOF
		}
	}
	return e.read()
}

// read reads the next byte of the line.
func (e *event) read() (c byte, err error) {
	if c, err = e.from.ReadByte(); err != nil {
		e.err = err
	}
	if err != nil || c == '\r' || c == '\n' {
		e.inData, e.hadCR = false, c == '\r'
	}
	return c, err
}

// beginLine begins the next line, and reads it if it is none of data. It returns false at an empty line, which ends an event, and
// at the end of the stream.
func (e *event) beginLine() bool {
	if e.hadCR {
		if next, _ := e.from.Peek(1); string(next) == "\n" {
			_, _ = e.from.Discard(1)
		}
	}
	if begin, _ := e.from.Peek(len(dataField)); string(begin) == dataField {
		_, _ = e.from.Discard(len(begin))
		e.inData = true
		return true
	}
	for length := 0; ; length++ {
		if c, err := e.read(); err != nil || c == '\r' || c == '\n' {
			return err == nil && length > 0
		}
	}
}
