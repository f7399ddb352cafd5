package msgpack_test

import (
	"math"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/msgpack"
)

func TestInts(t *testing.T) {
	for n, want := range map[int64]string{
		0:              "\x00",
		127:            "\x7f",
		128:            "\xcd\x00\x80",
		math.MaxUint16: "\xcd\xff\xff",
		1 << 16:        "\xce\x00\x01\x00\x00",
		math.MaxUint32: "\xce\xff\xff\xff\xff",
		1 << 32:        "\xd3\x00\x00\x00\x01\x00\x00\x00\x00",
		math.MaxInt64:  "\xd3\x7f\xff\xff\xff\xff\xff\xff\xff",
		-1:             "\xd3\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		if got := string(msgpack.AppendInt([]byte("before"), n)); got != "before"+want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	for n, want := range map[int]string{
		0: "\xa0", 31: "\xbf", 32: "\xd9\x20", 255: "\xd9\xff", 256: "\xda\x01\x00", math.MaxUint16: "\xda\xff\xff",
	} {
		text := strings.Repeat("x", n)
		if got := string(msgpack.AppendText(nil, text)); got != want+text {
			t.Errorf("%d bytes: %.5q, want %q", n, got, want)
		}
	}
}
