package usage

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxDecoded is how much of a compressed body is decoded, so that a small body cannot cost much time.
	MaxDecoded = 64 << 20

	// maxWindow is the largest window of zstd that is decoded. With it a response keeps less than 64 KiB. A body
	// that was compressed as a whole has a window of its own size.
	maxWindow = 4 << 10
)

// Codings are the content codings that can be decoded, besides identity.
const Codings = "gzip or zstd"

var errTooLarge = fmt.Errorf("the body is more than %d MiB when it is decoded", MaxDecoded>>20)

// decoder decodes a copy of a compressed body on its own goroutine, one piece after the other.
type decoder struct {
	pieces *io.PipeWriter
	done   chan struct{}
	err    error // after done
}

// decode sets the reader up for content codings, of which only one may not be identity.
func (r *Reader) decode(codings string, most int) error {
	coding, others := "", 0
	for each := range strings.SplitSeq(strings.ToLower(codings), ",") {
		if each = strings.TrimSpace(each); each != "" && each != "identity" {
			coding = each
			others++
		}
	}
	if others > 1 {
		return fmt.Errorf("the codings %.40q cannot be decoded, only one of %s", codings, Codings)
	}
	var decode func(io.Reader, io.Writer) error
	switch coding {
	case "":
		return nil
	case "gzip", "x-gzip":
		decode = decodeGzip
	case "zstd":
		decode = decodeZstd
	default:
		return fmt.Errorf("the coding %.20q cannot be decoded, only %s", coding, Codings)
	}
	from, to := io.Pipe()
	d := &decoder{pieces: to, done: make(chan struct{})}
	r.decoder = d
	go func() {
		defer close(d.done)
		d.err = decode(from, &capped{r, most})
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

// capped reads decoded pieces up to a size.
type capped struct {
	to   *Reader
	left int
}

// Write implements [io.Writer].
func (c *capped) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, errTooLarge
	}
	c.to.read(p)
	return len(p), nil
}

var (
	gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstds = sync.Pool{New: func() any {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // the options are wrong
		}
		return z
	}}
	buffers = sync.Pool{New: func() any { return new([4 << 10]byte) }}
)

func decodeGzip(from io.Reader, to io.Writer) error {
	z := gzips.Get().(*gzip.Reader)
	defer gzips.Put(z)
	if err := z.Reset(from); err != nil {
		return err
	}
	z.Header = gzip.Header{} // which may be large
	return pass(z, to)
}

func decodeZstd(from io.Reader, to io.Writer) error {
	z := zstds.Get().(*zstd.Decoder)
	defer func() {
		_ = z.Reset(nil)
		zstds.Put(z)
	}()
	if err := z.Reset(from); err != nil {
		return err
	}
	return pass(z, to)
}

// pass copies what a decoder reads, without methods that would take larger pieces.
func pass(from io.Reader, to io.Writer) error {
	buffer := buffers.Get().(*[4 << 10]byte)
	defer buffers.Put(buffer)
	_, err := io.CopyBuffer(to, struct{ io.Reader }{from}, buffer[:])
	return err
}
