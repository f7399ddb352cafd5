package logs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// unpacked returns the text of a log that may be compressed.
func unpacked(name string, from io.Reader) (*lines, error) {
	raw := newLines(from)
	begin, err := raw.Peek(sample)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var text io.Reader
	switch {
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		text, err = gzip.NewReader(raw)
	case bytes.HasPrefix(begin, []byte("\x28\xb5\x2f\xfd")):
		text, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	default:
		return raw, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: unpacking it: %w", name, whole(err))
	}
	return newLines(text), nil
}

// whole says what an unexpected end means, which only a compressed file can have.
func whole(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the file is cut: its end is missing")
	}
	return err
}

const bom = "\xef\xbb\xbf" // of UTF-8

// isText checks that the beginning of a log is text whose lines can be read.
func isText(name string, begin []byte) error {
	zeros := bytes.Count(begin, []byte{0})
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")), zeros > 0 && zeros >= len(begin)*2/5 && zeros <= len(begin)*3/5:
		return fmt.Errorf("%s: it is UTF-16: convert it first, as in iconv -f UTF-16 -t UTF-8 %s | caddy rate-limit replay -", name, name)
	case zeros > 0:
		return fmt.Errorf("%s: it is binary, not text: if it is packed in another way than gzip and zstd, unpack it first, as in xz -dc %s | caddy rate-limit replay -", name, name)
	}
	return nil
}
