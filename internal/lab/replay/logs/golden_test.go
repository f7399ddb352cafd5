package logs_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// logFormats are the texts of log_format for the logs that need one.
var logFormats = map[string][]string{
	"nginx.log":        {`$msec $request_time $remote_addr $host $scheme "$request" $status "$http_x_api_key" "$http_x_forwarded_for" $upstream_cache_status`},
	"two-nginx.log":    {`$msec $remote_addr "$request" $status`, `$remote_addr [$time_local] $host "$request" $status`},
	"nginx-escape.log": {`{"t":"$time_iso8601","ip":"$remote_addr","req":"$request","status":$status,"rt":$request_time,"ua":"$http_user_agent","key":"${http_x_api_key}"}`},
}

// TestGoldenFormats reads a log of each format, and compares what was understood with what should be.
func TestGoldenFormats(t *testing.T) {
	t.Parallel()
	for name, text := range allLogs(t) {
		got := describe(t, text, logs.Options{LogFormat: logFormats[name]})
		golden.Open(t, formats, strings.TrimSuffix(name, ".log")+".golden").Check(t, got)
	}
}

// formats has a log of each format, and what is understood of it.
const formats = "testdata/formats.txtar"

// allLogs returns the logs of formats by their names.
func allLogs(t testing.TB) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, c := range golden.Cases(t, formats) {
		if strings.HasSuffix(c.Name, ".log") {
			all[c.Name] = []byte(c.Text)
		}
	}
	return all
}

// describe writes what a log says.
func describe(t *testing.T, text []byte, o logs.Options) string {
	t.Helper()
	r, err := logs.Open("access.log", bytes.NewReader(text), o)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	f := r.Format()
	fmt.Fprintf(&b, "format %s host=%v scheme=%v duration=%v fractions=%v hashed=%v cut=%v header=%v response=%v\n",
		f.Name, f.Host, f.Scheme, f.Duration, f.Fractions, f.Hashed, f.Cut, f.Header, f.RespHeader)
	for {
		var got logs.Record
		if err := r.Next(&got); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
			break
		}
		b.WriteString(show(&got))
	}
	fmt.Fprintf(&b, "%d lines, %d no requests, %d not understood\n", r.Lines, r.NoRequests, r.NotUnderstood)
	for _, bad := range r.First {
		fmt.Fprintln(&b, bad)
	}
	return b.String()
}

func show(r *logs.Record) string {
	var b strings.Builder
	remote := ""
	if r.RemoteIP != "" && r.RemoteIP != r.ClientIP {
		remote = " via " + r.RemoteIP
	}
	fmt.Fprintf(&b, "%s +%v %s%s %s %s|%s%s %s %d user=%q\n", r.Start.UTC().Format(time.RFC3339Nano), r.Duration, r.ClientIP, remote,
		r.Method, r.Scheme, r.Host, r.URI, cmp.Or(r.Proto, "-"), r.Status, r.User)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "\t%s: %q\n", name, r.Header[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.RespHeader)) {
		fmt.Fprintf(&b, "\tresponse %s: %q\n", name, r.RespHeader[name])
	}
	return b.String()
}
