package usage

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"sync"
)

// MaxDecoded is how much of a compressed body is decoded, so that a small body cannot cost much time.
const MaxDecoded = 64 << 20

var errTooLarge = fmt.Errorf("the body is more than %d MiB when it is decoded", MaxDecoded>>20)

// decode sets the reader up for content codings, of which only one may not be identity. A compressed body is decoded on
// its own goroutine, one piece after the other.
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
	r.pieces, r.decoded = to, make(chan struct{})
	go func() {
		defer close(r.decoded)
		r.failure = r.readGzip(from, most)
		_ = from.CloseWithError(r.failure) // what comes now is dropped
	}()
	return nil
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
