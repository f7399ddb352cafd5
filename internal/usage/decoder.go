package usage

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// MaxDecoded is how much of a compressed body is decoded, so that a small body cannot cost much time.
const MaxDecoded = 64 << 20

var errTooLarge = fmt.Errorf("the body is more than %d MiB when it is decoded", MaxDecoded>>20)

// decoder decodes a copy of a compressed body on its own goroutine, one piece after the other.
type decoder struct {
	pieces *io.PipeWriter
	done   chan struct{}
	err    error // after done
}

// decode sets the reader up for content codings, of which only one may not be identity.
func (r *Reader) decode(codings string, most int) error {
	coding := ""
	for each := range strings.SplitSeq(strings.ToLower(codings), ",") {
		each = strings.TrimSpace(each)
		switch {
		case each == "" || each == "identity":
			continue
		case coding != "" || each != "gzip" && each != "x-gzip":
			return fmt.Errorf("the coding %.40q cannot be decoded, only gzip", codings)
		}
		coding = each
	}
	if coding == "" {
		return nil
	}
	from, to := io.Pipe()
	d := &decoder{pieces: to, done: make(chan struct{})}
	r.decoder = d
	go func() {
		defer close(d.done)
		d.err = r.readGzip(from, most)
		_ = from.CloseWithError(d.err) // what comes now is dropped
	}()
	return nil
}

func (d *decoder) write(p []byte) { _, _ = d.pieces.Write(p) }

// close waits until everything is decoded. A body that was cut off is no error, because the response may
// have been.
func (d *decoder) close() error {
	_ = d.pieces.Close()
	<-d.done
	if errors.Is(d.err, io.ErrUnexpectedEOF) || errors.Is(d.err, io.EOF) {
		return nil
	}
	return d.err
}

var gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// readGzip reads a compressed body up to a size when it is decoded. At its end the error is [io.EOF].
func (r *Reader) readGzip(from io.Reader, most int) error {
	z := gzips.Get().(*gzip.Reader)
	defer gzips.Put(z)
	if err := z.Reset(from); err != nil {
		return err
	}
	z.Header = gzip.Header{} // which may be large
	buffer := make([]byte, 4<<10)
	for {
		n, err := z.Read(buffer)
		if most -= n; most < 0 {
			return errTooLarge
		}
		r.read(buffer[:n])
		if err != nil {
			return err
		}
	}
}
