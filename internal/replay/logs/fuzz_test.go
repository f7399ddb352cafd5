package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// FuzzFormats reads anything as a log of every format. Nothing panics, every line is counted once, and a
// line of Caddy's JSON says what encoding/json reads in it.
func FuzzFormats(f *testing.F) {
	for name, text := range allLogs(f) {
		f.Add(text, logFormats[name])
		for line := range bytes.Lines(text) {
			f.Add(line, logFormats["nginx.log"])
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, logFormat string) {
		for _, format := range strings.Split("auto, "+logs.Formats(), ", ") {
			o := logs.Options{Format: format}
			if format == "nginx" {
				o.LogFormat = logFormat
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
			if bad, first := r.NotUnderstood(); records+bad > r.Lines() || (bad > 0) != (first != nil) {
				t.Fatalf("%s: %d records, %d bad lines, %d lines", format, records, bad, r.Lines())
			}
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		compareJSON(t, line)
	})
}

// compareJSON checks a line of Caddy's access log against encoding/json.
func compareJSON(t *testing.T, line []byte) {
	var l struct {
		TS      *float64 `json:"ts"`
		Logger  string   `json:"logger"`
		Status  int      `json:"status"`
		User    string   `json:"user_id"`
		Request *struct {
			ClientIP string              `json:"client_ip"`
			Method   string              `json:"method"`
			Host     string              `json:"host"`
			URI      string              `json:"uri"`
			Headers  map[string][]string `json:"headers"`
		} `json:"request"`
	}
	// The names of encoding/json do not tell upper from lower case, and those that come twice are joined.
	if !utf8.Valid(line) || !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &l) != nil || l.TS == nil || l.Request == nil || ambiguous(line) {
		return
	}
	if l.Logger != "" && !strings.HasPrefix(l.Logger, "http.log.access") || *l.TS < 0 || *l.TS > 9e9 || l.Status < 100 || l.Status > 999 {
		return
	}
	q := l.Request
	if addr, err := netip.ParseAddr(q.ClientIP); err != nil || addr.Zone() != "" || q.Method == "" || q.URI == "" {
		return
	}
	r, err := logs.Open("fuzz", bytes.NewReader(line), logs.Options{Format: "caddy"})
	if err != nil {
		return // zeros
	}
	var got logs.Record
	if err := r.Next(&got); err != nil {
		_, first := r.NotUnderstood()
		t.Fatalf("encoding/json reads %q: %v, %+v", line, err, first)
	}
	end := got.Start.Add(got.Duration)
	if math.Abs(float64(end.UnixNano())-*l.TS*1e9) > float64(2*time.Microsecond) || got.ClientIP != q.ClientIP || got.Method != q.Method || got.Host != q.Host ||
		got.URI != q.URI || got.Status != l.Status || got.User != l.User {
		t.Fatalf("encoding/json reads %+v %+v in %q, got %+v", l, *q, line, got)
	}
	n := 0
	for _, values := range q.Headers {
		n += len(values)
		for _, v := range values {
			if !slices.ContainsFunc(got.Header, func(f logs.Field) bool { return f.Value == v }) {
				t.Fatalf("the header %q of %q is missing in %+v", v, line, got.Header)
			}
		}
	}
	if n != len(got.Header) {
		t.Fatalf("%d values of headers in %q, got %+v", n, line, got.Header)
	}
}

// ambiguous reports whether an object has names that are equal but for upper and lower case, or null
// among the values of headers.
func ambiguous(line []byte) bool {
	if bytes.Contains(line, []byte("null")) {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(line))
	var objects []map[string]bool // nil for arrays
	name := true
	for {
		token, err := d.Token()
		if err != nil {
			return err != io.EOF
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				objects, name = append(objects, map[string]bool{}), true
			case '[':
				objects = append(objects, nil)
			default:
				objects, name = objects[:len(objects)-1], true
			}
			continue
		case string:
			if top := objects[len(objects)-1:]; len(top) > 0 && top[0] != nil && name {
				if lower := strings.ToLower(v); top[0][lower] || lower != v && slices.Contains(known, lower) {
					return true
				} else {
					top[0][lower] = true
				}
				name = false
				continue
			}
		}
		name = true
	}
}

// known are the names that are read.
var known = []string{"ts", "time", "timestamp", "@timestamp", "logger", "duration", "status", "user_id", "request", "client_ip", "method", "host", "uri", "headers"}
