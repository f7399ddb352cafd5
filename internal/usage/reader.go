package usage

import (
	"errors"
	"io"
	"strings"
)

// Reader reads a cost from the body of a response as it passes. It keeps nothing of the body but the
// numbers.
type Reader struct {
	scanner scanner
	last    [MaxFields][]byte // the last value of each term, or its beginning; nil if there was none
	events  events
	format  format
	marked  int // how much of a byte order mark has been read, or all of it

	pieces  *io.PipeWriter // of a compressed body; or else nil
	decoded chan struct{}  // is closed when all of it was decoded
	failure error          // why not all of it could be; after decoded
}

// mark is a byte order mark, which may be in front of a body.
const mark = "\xef\xbb\xbf"

type format uint8

const (
	unread format = iota
	oneText
	lines // JSON texts one after the other
	eventStream
)

// NewReader returns a reader for a body of a media type and content codings, as the values of the fields have them. It
// returns nil if such a body has no cost that could be read, and an error if it cannot be decoded.
func NewReader(f *Fields, contentType string, contentEncoding ...string) (*Reader, error) {
	format := formatOf(contentType)
	if format == unread {
		return nil, nil
	}
	r := &Reader{format: format}
	r.scanner.fields, r.scanner.found = f, r.keep
	r.scanner.reset()
	if err := r.decode(strings.Join(contentEncoding, ","), MaxDecoded); err != nil {
		return nil, err
	}
	return r, nil
}

// formatOf returns the format of a media type, whatever its parameters.
func formatOf(contentType string) format {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case name == "text/event-stream":
		return eventStream
	case name == "application/json", strings.HasPrefix(name, "application/") && strings.HasSuffix(name, "+json"):
		return oneText
	case name == "application/x-ndjson", name == "application/ndjson", name == "application/jsonl", name == "application/x-jsonlines":
		return lines
	}
	return unread
}

func (r *Reader) keep(term int, token []byte) error {
	r.last[term] = append(r.last[term][:0], token[:min(len(token), maxNumber+1)]...)
	return nil
}

// Write reads the next piece. It never fails.
func (r *Reader) Write(p []byte) (int, error) {
	if r.pieces != nil {
		_, _ = r.pieces.Write(p)
	} else {
		r.read(p)
	}
	return len(p), nil
}

// read reads the next piece of the body as it was before compression.
func (r *Reader) read(p []byte) {
	for ; r.marked < len(mark) && len(p) > 0; r.marked++ {
		if p[0] != mark[r.marked] {
			r.marked = len(mark)
			break
		}
		p = p[1:]
	}
	if r.format == eventStream {
		r.events.write(p, &r.scanner)
	} else {
		r.scanner.write(p)
	}
}

// Close ends the body, and waits until all of it is decoded. It must be called before Cost and Events. It returns an
// error if the body could not be decoded. One that was cut off is no error, because the response may have been.
func (r *Reader) Close() error {
	if r.pieces == nil {
		return nil
	}
	_ = r.pieces.Close()
	<-r.decoded
	if errors.Is(r.failure, io.ErrUnexpectedEOF) || errors.Is(r.failure, io.EOF) {
		return nil
	}
	return r.failure
}

// Cost returns the cost by what has been read so far, and whether there was any number. The error says
// that a number is no cost.
func (r *Reader) Cost() (cost int64, found bool, err error) {
	return r.scanner.fields.sum(&r.last)
}

// Done reports whether a stream has come to the event [DONE], with which most backends end it, so that
// nothing is missing if its connection ends then.
func (r *Reader) Done() bool { return r.format == eventStream && r.scanner.done }

// Events returns how many events or lines of a stream have been read so far; 0 for a body that is no
// stream. An event without an object does not count.
func (r *Reader) Events() int64 {
	switch {
	case r.format == eventStream:
		return r.events.count
	case r.format == lines || r.scanner.objs > 1:
		return r.scanner.objs
	}
	return 0
}
