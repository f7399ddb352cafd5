package logs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// sample is how much of a log is looked at to know its format.
	sample = 64 << 10

	// longestLine is more than a server logs of a request: headers are bounded by 1 MB.
	longestLine = 8 << 20
)

// newLines cuts a stream into lines. Of one that is longer than a server writes, each part counts as a line.
func newLines(from io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(from)
	s.Buffer(make([]byte, sample), 2*longestLine)
	s.Split(func(data []byte, atEnd bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEnd)
		if n == 0 && len(data) >= longestLine {
			return len(data), data, nil
		}
		return n, line, err
	})
	return s
}

// unpacked returns the text of a log that may be compressed.
func unpacked(name string, from io.Reader) (*bufio.Reader, error) {
	raw := bufio.NewReaderSize(from, sample)
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
	return bufio.NewReaderSize(text, sample), nil
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
	if bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff")) || bytes.IndexByte(begin, 0) >= 0 {
		return fmt.Errorf("%s: it is no text in UTF-8: convert it with iconv -f UTF-16 -t UTF-8, or unpack it, as in xz -dc %s | caddy rate-limit replay -", name, name)
	}
	return nil
}
