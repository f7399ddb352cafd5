package logs_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

func read(t *testing.T, log string) []byte {
	t.Helper()
	return []byte(golden.Open(t, formats, log).Text)
}

func packGzip(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packZstd(t *testing.T, text []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(text, nil)
}

// utf16 encodes ASCII.
func utf16(text []byte, bom string) []byte {
	b := []byte(bom)
	for _, c := range text {
		b = append(b, c, 0)
	}
	return b
}

// TestSameInOtherForms: what a log says does not depend on its compression, its line ends, a byte order
// mark, or the sizes in which it is read.
func TestSameInOtherForms(t *testing.T) {
	t.Parallel()
	text := read(t, "combined.log")
	want, _, _ := strings.Cut(describe(t, text, logs.Options{}), "8 lines")
	crlf := bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	zst := packZstd(t, text)
	for name, form := range map[string][]byte{
		"gzip": packGzip(t, text), "two gzips": append(packGzip(t, text[:500]), packGzip(t, text[500:])...), "zstd": zst,
		"two zstds": append(packZstd(t, text[:500]), packZstd(t, text[500:])...),
		"crlf":      crlf, "bom": append([]byte("\xef\xbb\xbf"), text...), "blank lines": append([]byte("\n  \n\r\n"), text...),
		"no line end": bytes.TrimSuffix(text, []byte("\n")), "bom in gzip": packGzip(t, append([]byte("\xef\xbb\xbf"), crlf...)),
	} {
		if got, _, _ := strings.Cut(describe(t, form, logs.Options{}), "8 lines"); got != want && !strings.HasPrefix(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	r, err := logs.Open("slow", iotest.OneByteReader(bytes.NewReader(zst)), logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rec := new(logs.Record); r.Next(rec) == nil; n++ {
	}
	if n != 4 {
		t.Errorf("read in single bytes, it has %d records, want 4", n)
	}
}

// TestTroubledLogs: what cannot be read is named, with what to do.
func TestTroubledLogs(t *testing.T) {
	t.Parallel()
	combined, caddy := read(t, "combined.log"), read(t, "caddy.log")
	packed, zst := packGzip(t, bytes.Repeat(combined, 300)), packZstd(t, bytes.Repeat(combined, 300))
	noise := make([]byte, 1000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for _, c := range []struct {
		name string
		log  []byte
		o    logs.Options
		want string
	}{
		{"empty", nil, logs.Options{}, "\n0 lines, 0 no requests, 0 not understood\n"},
		{"binary", noise, logs.Options{}, "access.log: it is no text in UTF-8"},
		{"utf-16", utf16(combined, "\xff\xfe"), logs.Options{}, "convert it with iconv -f UTF-16 -t UTF-8"},
		{"gzip that is cut", packed[:len(packed)/2], logs.Options{}, "error: after line "},
		{"gzip that is cut", packed[:len(packed)/2], logs.Options{}, ": the file is cut: its end is missing"},
		{"gzip that is spoilt", append(append(bytes.Clone(packed[:1000]), noise...), packed[1000:]...), logs.Options{}, "error: after line "},
		{"zstd that is cut", zst[:len(zst)/2], logs.Options{}, "the file is cut"},
		{"xz", []byte("\xfd7zXZ\x00....."), logs.Options{}, "or unpack it, as in xz -dc access.log | caddy rate-limit replay -"},
		{"prose", []byte("Dear log,\ntoday I met a limit.\n"), logs.Options{}, `access.log: none of the first lines is in a format that is known (caddy, ingress-nginx, nginx-proxy-manager, combined, haproxy, alb, envoy-text, w3c, cloudflare, traefik, envoy, gcp, nginx-json, nginx): name one with --format, or give the text of nginx's log_format with --log-format; the first line is "Dear log,"`},
		{"latin-1", []byte("192.0.2.1 - J\xfcrgen [10/Oct/2000:13:55:37 -0700] \"GET /\xe4 HTTP/1.0\" 404 - \"-\" \"\xff\"\n\xfc\xfc\n"), logs.Options{}, `access.log:2: the line is cut or malformed: \xfc\xfc`},
		{"wrong format", combined, logs.Options{Format: "caddy"}, "8 lines, 0 no requests, 8 not understood\naccess.log:1: the line is cut or malformed: 203.0.113.7 - - ["},
		{"unknown format", combined, logs.Options{Format: "apache2"}, `format must be auto or one of caddy, ingress-nginx, nginx-proxy-manager, combined, haproxy, alb, envoy-text, w3c, cloudflare, traefik, envoy, gcp, nginx-json, nginx, got "apache2"`},
		{"nginx without a text", combined, logs.Options{Format: "nginx"}, "the format nginx needs the text of its log_format: --log-format '$remote_addr"},
		{"text without a time", combined, logs.Options{LogFormat: []string{`$remote_addr "$request"`}}, "log format: it has no time: add $msec, $time_iso8601 or $time_local, got "},
		{"text without a blank", combined, logs.Options{LogFormat: []string{`$msec$remote_addr "$request"`}}, "log format: $msec and $remote_addr cannot be told apart: put a blank between them"},
		{"no #Fields", []byte("2026-11-20 00:00:01 10.180.0.159 GET / - 80\n"), logs.Options{Format: "w3c"}, "access.log:1: there is no line #Fields before it"},
		{"cut line", caddy[:900], logs.Options{}, "access.log:2: the line is cut or malformed"},
		{"bad time", []byte(`{"ts":"yesterday","request":{"client_ip":"192.0.2.1","method":"GET","uri":"/"}}`), logs.Options{Format: "caddy"}, "no time in a known format"},
		{"no address", []byte(`{"ts":1,"request":{"client_ip":"unix","method":"GET","uri":"/"}}`), logs.Options{Format: "caddy"}, "no client address"},
	} {
		got := describe(t, c.log, c.o)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if strings.ContainsAny(got, "\x1b\x07\u202e\x00") {
			t.Errorf("%s: control characters in\n%q", c.name, got)
		}
	}
}

// TestLongLines: lines of 2 MB are read, and longer ones than a server writes are not understood, at no
// cost in memory.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := func(n int) string {
		return fmt.Sprintf(`192.0.2.1 - - [10/Oct/2000:13:55:37 -0700] "GET /%s HTTP/1.0" 404 -`, strings.Repeat("x", n)) + "\n"
	}
	r, err := logs.Open("access.log", io.MultiReader(strings.NewReader(long(1)), strings.NewReader(long(2<<20)), strings.NewReader(long(10<<20)), strings.NewReader(long(3))), logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for rec := new(logs.Record); r.Next(rec) == nil; {
		sizes = append(sizes, len(rec.URI))
	}
	if want := []int{2, 2<<20 + 1, 4}; fmt.Sprint(sizes) != fmt.Sprint(want) {
		t.Errorf("the URIs have %d bytes, want %d", sizes, want)
	}
	if r.NotUnderstood != 2 || !strings.Contains(r.First[0], ":3: the line is cut or malformed: ") || len(r.First[0]) > 250 {
		t.Errorf("%d lines were not understood, want the two parts of one: %q", r.NotUnderstood, r.First)
	}
}
