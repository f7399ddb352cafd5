package logs_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
)

// FuzzFormats reads anything as a log of every format. Nothing panics, and every line is counted once.
func FuzzFormats(f *testing.F) {
	for name, text := range allLogs(f) {
		f.Add(text, strings.Join(logFormats[name], "\n"))
		for line := range bytes.Lines(text) {
			f.Add(line, logFormats["nginx.log"][0])
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, logFormat string) {
		for _, format := range strings.Split("auto, "+logs.Formats(), ", ") {
			o := logs.Options{Format: format}
			if format == "nginx" {
				o.LogFormat = strings.Split(logFormat, "\n")
			}
			r, err := logs.Open("fuzz", bytes.NewReader(text), o)
			if err != nil {
				continue
			}
			records := int64(0)
			var rec logs.Record
			for {
				err := r.Next(&rec)
				if err != nil {
					if !errors.Is(err, io.EOF) && !bytes.HasPrefix(text, []byte("\x1f\x8b")) && !bytes.HasPrefix(text, []byte("\x28\xb5")) {
						t.Fatal(err)
					}
					break
				}
				records++
				if _, err := netip.ParseAddr(rec.ClientIP); err != nil || rec.Start.IsZero() || rec.Duration < 0 || rec.Method == "" || rec.URI == "" {
					t.Fatalf("%s: %+v", format, rec)
				}
			}
			if bad := r.NotUnderstood; records+bad+r.NoRequests != r.Lines || min(bad, 3) != int64(len(r.First)) {
				t.Fatalf("%s: %d records, %d no requests, %d bad lines, %d lines", format, records, r.NoRequests, bad, r.Lines)
			}
		}
	})
}
