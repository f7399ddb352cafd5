package logs_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// caddyLog makes a log of the size that browsers and Caddy make of it.
func caddyLog(lines int) []byte {
	var b bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&b, `{"level":"info","ts":%d.%06d,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"10.1.%d.%d","remote_port":"%d","client_ip":"10.1.%d.%d","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/articles/%d?page=%d","headers":{"User-Agent":["Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"],"Accept":["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8"],"Accept-Encoding":["gzip, deflate, br, zstd"],"Accept-Language":["en-US,en;q=0.9,de;q=0.8"],"Sec-Ch-Ua-Platform":["\"Windows\""],"Sec-Fetch-Mode":["navigate"],"Cookie":["REDACTED"],"Referer":["https://www.example.com/"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"www.example.com","ech":false}},"bytes_read":0,"user_id":"","duration":0.000%d,"size":15312,"status":200,"resp_headers":{"Server":["Caddy"],"Alt-Svc":["h3=\":443\"; ma=2592000"],"Content-Type":["text/html; charset=utf-8"],"Content-Encoding":["gzip"],"Vary":["Accept-Encoding"],"Etag":["\"dh3jxjyt\""]}}`+"\n",
			1763769600+i/50, i%50*20000, i>>8&255, i&255, 1024+i%60000, i>>8&255, i&255, i%1000, i%7, 100000+i%900000)
	}
	return b.Bytes()
}

func BenchmarkCaddy(b *testing.B) {
	const lines = 5000
	text := caddyLog(lines)
	for _, c := range []struct {
		name string
		o    logs.Options
	}{{"all", logs.Options{}}, {"few", logs.Options{Header: []string{"User-Agent", "Cookie"}, RespHeader: []string{}}}} {
		b.Run(c.name, func(b *testing.B) {
			benchmark(b, text, c.o)
		})
	}
}

func BenchmarkCombined(b *testing.B) {
	var text bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&text, `10.1.%d.%d - - [20/Nov/2026:14:%02d:%02d +0100] "GET /articles/%d?page=%d HTTP/2.0" 200 5316 "https://www.example.com/" "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"`+"\n",
			i>>8&255, i&255, i/60%60, i%60, i%1000, i%7)
	}
	benchmark(b, text.Bytes(), logs.Options{})
}

// benchmark measures single lines.
func benchmark(b *testing.B, text []byte, o logs.Options) {
	var r *logs.Reader
	var rec logs.Record
	b.ReportAllocs()
	b.SetBytes(int64(len(text) / bytes.Count(text, []byte("\n"))))
	for b.Loop() {
		if r != nil {
			if err := r.Next(&rec); err == nil {
				continue
			} else if err != io.EOF {
				b.Fatal(err)
			}
		}
		var err error
		if r, err = logs.Open("bench", bytes.NewReader(text), o); err != nil {
			b.Fatal(err)
		}
	}
}
