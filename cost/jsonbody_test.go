package cost_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/cost"
)

func compiled(t testing.TB, b *cost.JSONBody, paths ...string) *cost.JSONBody {
	t.Helper()
	if err := b.Compile(paths); err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzJSONBody: whatever the body is, the upstream reads the same bytes, and a call that encoding/json finds in it is counted under
// its name, or the request is refused.
func FuzzJSONBody(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"method":"tools/call","params":{"name":"a"}}`, `[{"method":"tools/call","params":{"name":"a"}},{"method":"x"}]`, `{"METHOD":"tools/call"}`,
		`{"method":"x","method":"tools/call"}`, `{"\u006dethod":"tools\/call","params":{"name":"\u0061"}}`, "\xef\xbb\xbf{}", `{"method":"tools/call"}x`, `{"method":"tools/call","params":{"name":"\ud800"}}`,
	} {
		f.Add([]byte(seed))
	}
	q := compiled(f, &cost.JSONBody{Match: map[string][]string{"method": {"tools/call"}}, MaxBody: 4096}, "params.name")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		calls, _, refusal := q.Read(r)
		if rest, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(rest, body) {
			t.Fatalf("the upstream reads %q, want %q, %v", rest, body, err)
		}
		if refusal != nil {
			return
		}
		type call struct {
			Method string
			Params struct{ Name string }
		}
		all := make([]call, 1)
		text := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		if json.NewDecoder(bytes.NewReader(text)).Decode(&all[0]) != nil {
			all = nil
			if json.NewDecoder(bytes.NewReader(text)).Decode(&all) != nil {
				return // another type of a field, which FuzzTexts of package usage compares
			}
		}
		for i, c := range all {
			if c.Method == "tools/call" && (!q.Matches(calls, i) || calls.Text(i, "params.name") != c.Params.Name) {
				t.Fatalf("call %d of %q is not counted", i, body)
			}
		}
	})
}

// request is a call with a text of about a length.
func request(length int) []byte {
	return []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search","arguments":{"query":"` + strings.Repeat(`some words, \"quoted\" ones `, length/27) + `","limit":10}}}`)
}

// BenchmarkJSONBody reads the method and the name of a tool in a body, and hands on the body: as a zone does it, and with
// encoding/json into a struct and into maps.
func BenchmarkJSONBody(b *testing.B) {
	q := compiled(b, &cost.JSONBody{Match: map[string][]string{"method": {"tools/call"}}}, "params.name")
	type call struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	byJSON := func(to func() any) func(r *http.Request) bool {
		return func(r *http.Request) bool {
			text, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(text))
			return err == nil && json.Unmarshal(text, to()) == nil
		}
	}
	for _, size := range []struct {
		name   string
		length int
	}{{"1kB", 1000}, {"100kB", 100_000}} {
		text := request(size.length)
		for name, read := range map[string]func(r *http.Request) bool{
			"zone": func(r *http.Request) bool {
				calls, _, refusal := q.Read(r)
				return refusal == nil && q.Matches(calls, 0) && calls.Text(0, "params.name") == "search"
			},
			"struct": byJSON(func() any { return new(call) }),
			"maps":   byJSON(func() any { return new(map[string]any) }),
			"none":   func(*http.Request) bool { return true },
		} {
			b.Run(size.name+"/"+name, func(b *testing.B) {
				r := httptest.NewRequest(http.MethodPost, "/", nil)
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
					if !read(r) {
						b.Fatal("not read")
					}
					if n, err := io.Copy(io.Discard, r.Body); n != int64(len(text)) || err != nil {
						b.Fatal(n, err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			})
		}
	}
}
