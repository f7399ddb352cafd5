package late_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// answers writes a response of a type and, after a flush for each, its pieces.
func answers(status int, contentType string, pieces ...string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		for _, p := range pieces {
			if _, err := io.WriteString(w, p); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
		return nil
	}
}

// then writes the beginning of a response, and ends it in another way.
func then(begin, end caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := begin(w, r); err != nil {
			return err
		}
		return end(w, r)
	}
}

// zipped returns a text in gzip.
func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// TestCostResponse: a request costs what the body of its response says, however the body comes and ends.
// Where it does not say so, the options of the zone decide.
func TestCostResponse(t *testing.T) {
	const json, sse = "application/json", "text/event-stream"
	event := func(n int) string { return fmt.Sprintf("data: {\"usage\":{\"in\":%d,\"out\":1}}\n\n", n) }
	const nothing = "data: {\"text\":\"usage\"}\n\n"
	whole := `{"text":"{\"usage\":{\"in\":1}}","usage":{"in":30,"out":20}}`
	abort := func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }
	fails := func(http.ResponseWriter, *http.Request) error { return errors.New("upstream failed") }
	written := make(chan struct{}, 1)
	waits := func(_ http.ResponseWriter, r *http.Request) error {
		written <- struct{}{}
		return wait499(r)
	}
	with := func(name, value string, h caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set(name, value)
			return h(w, r)
		}
	}
	cases := []struct {
		name   string
		leaves string // when the client does: before the response, or later
		// What the request costs in the zone plain, in the zone with options, and in the one that charges
		// only for successes.
		plain, options, success int64
		behind                  caddyhttp.HandlerFunc
	}{
		{"JSON", "", 110, 110, 110, answers(200, json, whole)},
		{"JSON in pieces", "", 110, 110, 110, answers(200, json, strings.Split(whole, "")...)},
		{"less than booked", "", 6, 6, 6, answers(200, json, `{"usage":{"in":2,"out":1}}`)},
		{"nothing", "", 0, 0, 0, answers(200, json, `{"usage":{"in":0,"out":0}}`)},
		{"with its length", "", 110, 110, 110, with("Content-Length", fmt.Sprint(len(whole)), answers(200, json, whole))},
		{"events", "", 54, 54, 54, answers(200, sse, event(1), nothing, event(50))},
		{"through ReadFrom", "", 110, 110, 110, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", json)
			_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(whole)})
			return err
		}},
		{"gzip", "", 110, 110, 110, with("Content-Encoding", "gzip", answers(200, json, zipped(whole)))},
		{"gzip in pieces", "", 110, 110, 110, with("Content-Encoding", "gzip", answers(200, json, strings.SplitAfter(zipped(whole), "")...))},
		{"gzip cut off", "later", 10, 60, 10, then(with("Content-Encoding", "gzip", answers(200, json, zipped(whole)[:20])), waits)},
		{"not gzip", "", 10, 70, 10, with("Content-Encoding", "gzip", answers(200, json, whole))},
		{"br", "", 10, 70, 10, with("Content-Encoding", "br", answers(200, json, whole))},
		{"no number", "", 10, 70, 10, answers(200, json, `{"usage":null}`)},
		{"negative", "", 10, 70, 10, answers(200, json, `{"usage":{"in":-5}}`)},
		{"negative sum", "", 10, 70, 10, answers(200, json, `{"usage":{"in":1,"free":5}}`)},
		{"HTML", "", 10, 70, 10, answers(200, "text/html", whole)},
		{"no body", "", 10, 70, 10, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(204); return nil }},
		{"nothing written", "", 10, 70, 10, func(http.ResponseWriter, *http.Request) error { return nil }},
		{"refused by the upstream", "", 10, 10, 0, answers(400, json, `{"error":{"message":"usage"}}`)},
		{"error that says its cost", "", 110, 110, 0, answers(500, json, whole)},
		{"error of a handler", "", 10, 10, 0, func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(502, errors.New("no upstream")) }},
		{"client gone before", "before", 10, 60, 10, waits},
		{"client gone", "later", 10, 60, 10, then(answers(200, sse, nothing, nothing), waits)},
		{"client gone after a part", "later", 54, 60, 54, then(answers(200, sse, event(50)), waits)},
		{"client gone after a large part", "later", 94, 94, 94, then(answers(200, sse, event(90)), waits)},
		{"client gone after a small part", "later", 10, 60, 10, then(answers(200, sse, event(1)), waits)},
		{"client gone after the end", "later", 5, 5, 5, then(answers(200, sse, event(1), "data: [DONE]\n\n"), waits)},
		{"client gone after JSON of known length", "later", 110, 110, 110, then(with("Content-Length", fmt.Sprint(len(whole)), answers(200, json, whole)), waits)},
		{"upstream gone", "", 10, 60, 10, then(answers(200, sse, nothing), abort)},
		{"upstream fails", "", 10, 60, 10, then(answers(200, sse, nothing), fails)},
	}
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	zone := `"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h", "cost": 10,
		"charge": {"json": ["usage.in", "usage.out*4", "usage.free*-1"]`
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"plain": {`+zone+`}},
		"options": {`+zone+`, "broken_off": 60, "unknown": 70}},
		"success": {`+zone+`, "status": ["2xx"]}}}}`)
	for _, http2 := range []bool{false, true} {
		for _, c := range cases {
			key := fmt.Sprint(c.name, http2)
			e := caddytest.Send(t, h, http2, c.behind, "Client", key)
			e.End(c.leaves, func() { <-written })
			plain, options, success := kept.Used(t, "plain", key), kept.Used(t, "options", key), kept.Used(t, "success", key)
			if plain != c.plain || options != c.options || success != c.success {
				t.Errorf("%s, HTTP/2 %v: charged %d, %d and %d, want %d, %d and %d", c.name, http2, plain, options, success, c.plain, c.options, c.success)
			}
		}
	}
}

// TestCountedEvents: with counted, a stream that ends without a cost costs what was booked and something
// for each event.
func TestCountedEvents(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"tokens": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request",
		"max_events": 1000, "window": "1h", "cost": 10, "charge": {"json": ["usage.total"], "broken_off": "counted", "unknown": "counted*2.5"}}}}`)
	stream := answers(200, "text/event-stream", ": hello\n\n", "data: {}\n\n", "data: {}\n\n", "data: {}\n\n", "event: x\n\n")
	for key, c := range map[string]struct {
		want   int64
		behind caddyhttp.HandlerFunc
	}{
		"ends":       {17, stream},
		"broken off": {13, then(stream, func(http.ResponseWriter, *http.Request) error { return errors.New("upstream failed") })},
		"JSON":       {10, answers(200, "application/json", `{"x":1}`)},
		"lines":      {15, answers(200, "application/x-ndjson", "{}\n{}\n")},
		"failed":     {10, answers(500, "text/event-stream", "data: {}\n\n")},
	} {
		e := caddytest.Send(t, h, false, c.behind, "Client", key)
		<-e.Done
		if got := kept.Used(t, "tokens", key); got != c.want {
			t.Errorf("%s: charged %d, want %d", key, got, c.want)
		}
	}
}

// TestResponsesAreUnchanged: the client gets each response byte for byte, with its flushes, trailers and
// length, and the upstream is asked only for codings that can be read.
func TestResponsesAreUnchanged(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"a": {"algorithm": "fixed_window", "max_events": 100000, "window": "1h", "cost": 10, "charge": {"json": ["usage.total"]}},
		"b": {"algorithm": "fixed_window", "max_events": 100000, "window": "1h", "cost": 10, "charge": {"json": ["usage.other*2"]}}}}`)
	body := `{"text":"` + strings.Repeat("x", 100_000) + `","usage":{"total":5}}`
	accepted := make(chan string, 1)
	flushed := make(chan struct{})
	server := caddytest.NewHandlerServer(t, h, true, map[string]caddyhttp.HandlerFunc{
		"/": func(w http.ResponseWriter, r *http.Request) error {
			accepted <- r.Header.Get("Accept-Encoding")
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Trailer", "X-Sum")
			_, err := io.Copy(w, strings.NewReader(body))
			w.Header().Set("X-Sum", "17")
			return err
		},
		"/flush": func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {}\n\n")
			w.(http.Flusher).Flush()
			<-flushed // the client has the event by now
			return nil
		},
	})
	for sent, want := range map[string]string{
		"br": "identity", "gzip, br;q=0.9": "gzip", "zstd, GZIP;q=0.5": "gzip", "gzip;q=0, br": "identity", "gzip;q=0.000": "identity", "gzip; q=0.01": "gzip", "*": "gzip",
		"deflate, *;q=0": "identity", "identity": "identity",
	} {
		r, _ := http.NewRequest(http.MethodGet, server.URL+"/", nil)
		r.Header.Set("Accept-Encoding", sent)
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(got) != body || response.Trailer.Get("X-Sum") != "17" {
			t.Errorf("%d bytes, trailer %v, %v", len(got), response.Trailer, err)
		}
		if asked := <-accepted; asked != want {
			t.Errorf("Accept-Encoding %q became %q, want %q", sent, asked, want)
		}
	}
	response, err := server.Client().Get(server.URL + "/flush")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	close(flushed)
	response.Body.Close()
}

// TestCostResults: the results are counted.
func TestCostResults(t *testing.T) {
	ctx := caddytest.Config(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"tokens": {"algorithm": "fixed_window", "max_events": 1000, "window": "1h", "cost": 10,
		"charge": {"json": ["usage.total"], "status": ["2xx", "5xx"]}}}}`)
	caddytest.Run(t, ctx)
	const json = "application/json"
	for path, behind := range map[string]caddyhttp.HandlerFunc{
		"read":    answers(200, json, `{"usage":{"total":7}}`),
		"unknown": answers(200, json, `{}`),
		"invalid": answers(200, json, `{"usage":{"total":"7"}}`),
		"encoded": func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Encoding", "br")
			return answers(200, json, "")(w, r)
		},
		"broken_off":  then(answers(200, json, `{}`), func(http.ResponseWriter, *http.Request) error { return errors.New("failed") }),
		"failed":      answers(500, json, `{}`),
		"not_charged": answers(404, json, `{}`),
	} {
		before := caddytest.Scrape(t, ctx)
		w := httptest.NewRecorder()
		_ = h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), behind)
		name := "response_costs_total{result=" + path + ",zone=tokens}"
		if got := caddytest.Scrape(t, ctx)[name] - before[name]; got != 1 {
			t.Errorf("%s counts %v", name, got)
		}
	}
	if got := caddytest.Scrape(t, ctx)["response_cost_sum_total{zone=tokens}"]; got != 7+5*10 {
		t.Errorf("the sum is %v, want 57", got)
	}
	text := caddytest.Admin(t, http.MethodGet, "zones?zone=tokens", "")
	if !strings.Contains(text, `"cost_sum": 57`) || !strings.Contains(text, `"broken_off": 1`) {
		t.Errorf("admin API: %s", text)
	}
}
