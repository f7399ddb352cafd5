package logs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// packed are formats of compression, by how files begin.
var packed = []struct {
	magic, name string
	open        func(io.Reader) (io.Reader, error) // nil if another program has to unpack it
	unpack      string
}{
	{magic: "\x1f\x8b", name: "gzip", open: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{magic: "\x28\xb5\x2f\xfd", name: "zstd", open: func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	}},
	{magic: "BZh", name: "bzip2", unpack: "bzip2 -dc"},
	{magic: "\xfd7zXZ\x00", name: "xz", unpack: "xz -dc"},
	{magic: "\x04\x22\x4d\x18", name: "lz4", unpack: "lz4 -dc"},
	{magic: "PK\x03\x04", name: "zip", unpack: "unzip -p"},
}

// unpacked returns the text of a log that may be compressed.
func unpacked(name string, from io.Reader) (*lines, error) {
	raw := newLines(from)
	begin, err := raw.Peek(sample)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, p := range packed {
		switch {
		case !bytes.HasPrefix(begin, []byte(p.magic)):
		case p.open == nil:
			return nil, fmt.Errorf("%s: it is compressed with %s: unpack it first, as in %s %s | caddy rate-limit replay -", name, p.name, p.unpack, name)
		default:
			text, err := p.open(raw)
			if err != nil {
				return nil, fmt.Errorf("%s: unpacking %s: %w", name, p.name, whole(err))
			}
			return newLines(packedReader{text, p.name}), nil
		}
	}
	return raw, nil
}

// packedReader names the compression in errors.
type packedReader struct {
	io.Reader
	name string
}

func (p packedReader) Read(to []byte) (int, error) {
	n, err := p.Reader.Read(to)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("unpacking %s: %w", p.name, whole(err))
	}
	return n, err
}

// whole says what an unexpected end means.
func whole(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
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
		return fmt.Errorf("%s: it is binary, not text", name)
	}
	return nil
}
