package zone_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// post sends a body through a handler. It returns the status, and checks that the next reader of the body reads the same.
func post(t *testing.T, h caddytest.Handler, body string, header http.Header, chunked bool) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://example.com/mcp", strings.NewReader(body))
	if chunked {
		r.ContentLength = -1
		r.Body = io.NopCloser(struct{ io.Reader }{strings.NewReader(body)})
	}
	r.Header = header.Clone()
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	status := caddytest.Status(h, r)
	if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != body {
		t.Errorf("%.80q: status %d, and then %d bytes of %d are read, %v", body, status, len(rest), len(body), err)
	}
	return status
}

// upstreamsCall reports whether an upstream that reads JSON as Go does takes a body for a call of tools/call with search: names in
// any case, the last one of several, the calls of a batch one by one, and whatever comes behind the text.
func upstreamsCall(body string) bool {
	type call struct {
		Method string
		Params struct{ Name string }
	}
	var one call
	var several []call
	text := strings.TrimPrefix(body, "\xef\xbb\xbf")
	if json.NewDecoder(strings.NewReader(text)).Decode(&one) == nil {
		several = append(several, one)
	} else {
		_ = json.NewDecoder(strings.NewReader(text)).Decode(&several)
	}
	return slices.ContainsFunc(several, func(c call) bool { return c.Method == "tools/call" && c.Params.Name == "search" })
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func wide(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

// plain is a call as clients write it.
const plain = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"q":"x"}}}`

// What a body may be for the zone.
const (
	search  = 429 // it was counted as a call of search: a second one is refused
	another = 200 // it is none, or a call of another tool
)

// hostile are bodies that a client may send to call a tool without being counted, and what the zone makes of them: they are
// counted as what they call, or refused with a status.
var hostile = []struct {
	name, body string
	want       int
	header     []string
}{
	{"plain", plain, search, nil},
	{"with spaces", " {\n\t\"method\" : \"tools/call\" , \"params\" : { \"name\" : \"search\" } }\r\n", search, nil},
	{"escaped name", `{"\u006dethod":"tools/call","params":{"n\u0061me":"search"}}`, search, nil},
	{"escaped value", `{"method":"tools\/c\u0061ll","params":{"name":"\u0073earch"}}`, search, nil},
	{"byte order mark", "\xef\xbb\xbf" + plain, search, nil},
	{"array in the arguments", `{"method":"tools/call","params":{"arguments":[[{"name":"other"}]],"name":"search"}}`, search, nil},
	{"method in the arguments", `{"params":{"arguments":{"method":"ping","name":"x"},"name":"search"},"method":"tools/call"}`, search, nil},
	{"braces in a text", `{"x":"}{\"method\":\"ping\"","method":"tools/call","params":{"name":"search"}}`, search, nil},
	{"a name elsewhere twice", `{"x":1,"x":2,"method":"tools/call","params":{"name":"search"}}`, search, nil},
	{"deep elsewhere", `{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,"method":"tools/call","params":{"name":"search"}}`, search, nil},
	{"text as the type", plain, search, []string{"Content-Type", "text/plain"}},
	{"charset utf-8", plain, search, []string{"Content-Type", "application/json; charset=\"UTF-8\""}},
	{"identity", plain, search, []string{"Content-Encoding", "identity"}},
	{"name of a prototype", `{"__proto__":{"method":"ping"},"method":"tools/call","params":{"name":"search"}}`, search, nil},

	{"no body", "", another, nil},
	{"empty object", `{}`, another, nil},
	{"another method", `{"method":"tools/list","params":{"name":"search"}}`, another, nil},
	{"another tool", `{"method":"tools/call","params":{"name":"fetch"}}`, another, nil},
	{"method is null", `{"method":null,"params":{"name":"search"}}`, another, nil},
	{"params by position", `{"method":"tools/call","params":["search"]}`, another, nil},
	{"space in the value", `{"method":"tools/call ","params":{"name":"search"}}`, another, nil},
	{"answer of a client", `{"jsonrpc":"2.0","id":1,"result":{"method":"tools/call"}}`, another, nil},
	{"dots instead of objects", `{"method":"tools/call","params.name":"search"}`, another, nil},

	{"method twice, the last counts", `{"method":"ping","method":"tools/call","params":{"name":"search"}}`, 400, nil},
	{"method twice, one escaped", `{"m\u0065thod":"ping","method":"tools/call","params":{"name":"search"}}`, 400, nil},
	{"tool twice", `{"method":"tools/call","params":{"name":"fetch","name":"search"}}`, 400, nil},
	{"params twice", `{"method":"tools/call","params":{"name":"fetch"},"params":{"name":"search"}}`, 400, nil},
	{"another case of a name", `{"Method":"tools/call","params":{"name":"search"}}`, 400, nil},
	{"another case below", `{"method":"tools/call","params":{"name":"fetch","Name":"search"}}`, 400, nil},
	{"long s, which Go takes for s", "{\"method\":\"tools/call\",\"param\u017f\":{\"name\":\"search\"}}", 400, nil},
	{"zero byte behind a name", `{"method\u0000x":"tools/call","params":{"name":"search"}}`, 400, nil},
	{"zero byte in a long name", `{"method\u0000` + strings.Repeat("x", 2000) + `":"tools/call","params":{"name":"search"}}`, 400, nil},
	{"zero byte behind a value", `{"method":"tools/call","params":{"name":"search\u0000x"}}`, 400, nil},
	{"half a character in a value", `{"method":"tools/call","params":{"name":"search\udc00"}}`, 400, nil},
	{"tool is an array", `{"method":"tools/call","params":{"name":["search"]}}`, 400, nil},
	{"tool is an object", `{"method":"tools/call","params":{"name":{"name":"search"}}}`, 400, nil},
	{"tool is a fraction", `{"method":"tools/call","params":{"name":0.5}}`, 400, nil},
	{"tool is a long number", `{"method":"tools/call","params":{"name":` + strings.Repeat("1", 60) + `}}`, 400, nil},
	{"long tool", `{"method":"tools/call","params":{"name":"` + strings.Repeat("x", 257) + `"}}`, 400, nil},
	{"empty batch", `[]`, 400, nil},
	{"behind other calls", `[{"method":"ping"},{},` + plain + `]`, 400, nil},
	{"batch in a batch", `[[` + plain + `]]`, 400, nil},
	{"batch with null", `[null,` + plain + `]`, 400, nil},
	{"text at the top", `"tools/call"`, 400, nil},
	{"null at the top", `null`, 400, nil},
	{"second text behind", `{"method":"ping"}` + plain, 400, nil},
	{"record separator before", "\x1e" + plain, 400, nil},
	{"cut off", plain[:len(plain)-1], 400, nil},
	{"comma at the end", `{"method":"tools/call","params":{"name":"search"},}`, 400, nil},
	{"NaN", `{"x":NaN,"method":"tools/call","params":{"name":"search"}}`, 400, nil},
	{"line break in a text", "{\"x\":\"\n\",\"method\":\"tools/call\",\"params\":{\"name\":\"search\"}}", 400, nil},
	{"no UTF-8", "{\"x\":\"\xff\",\"method\":\"tools/call\",\"params\":{\"name\":\"search\"}}", 400, nil},
	{"letter in two bytes", "{\"\xc1\xadethod\":\"tools/call\",\"params\":{\"name\":\"search\"}}", 400, nil},
	{"UTF-16", wide(plain), 400, nil},
	{"deeper than Go reads", `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `,"method":"tools/call"}`, 400, nil},
	{"form", `method=tools/call`, 400, []string{"Content-Type", "application/x-www-form-urlencoded"}},
	{"gzip", zipped(plain), 415, []string{"Content-Encoding", "gzip"}},
	{"gzip without a header", zipped(plain), 400, nil},
	{"unknown coding", plain, 415, []string{"Content-Encoding", "x"}},
	{"two codings", plain, 415, []string{"Content-Encoding", "identity", "Content-Encoding", "br"}},
	{"charset UTF-16", plain, 415, []string{"Content-Type", "application/json; charset=utf-16"}},
	{"two types", plain, 415, []string{"Content-Type", "application/json", "Content-Type", "text/plain"}},
	{"type that does not parse", plain, 415, []string{"Content-Type", "application/json; charset"}},
	{"as large as may be", `{"x":"` + strings.Repeat("x", 1<<20-len(plain)-7) + `",` + plain[1:], search, nil},
	{"too large", `{"x":"` + strings.Repeat("x", 1<<20) + `",` + plain[1:], 413, nil},
}

// zonesOfTools are zones that allow one call of each tool, by fields in all options that may have them.
var zonesOfTools = map[string]string{
	"vars":       `"match": [{"method": ["POST"], "vars": {"{http.rate_limit.json.method}": ["tools/call"]}}], "key": "{http.request.header.Case} {http.rate_limit.json.params.name}"`,
	"expression": `"match": [{"expression": "{http.rate_limit.json.method} == 'tools/call'"}], "key": "{http.request.header.Case} {http.rate_limit.json.params.name}"`,
	"not":        `"match": [{"not": [{"vars": {"{http.rate_limit.json.method}": ["", "ping", "tools/list", "Tools/Call", "tools/call "]}}]}], "key": "{http.request.header.Case} {http.rate_limit.json.params.name}"`,
	"exempt": `"exempt": [{"not": [{"vars": {"{http.rate_limit.json.method}": ["tools/call"]}}]}, {"not": [{"vars": {"{http.rate_limit.json.params.name}": ["search"]}}]}],
		"key": "{http.request.header.Case}"`,
}

// TestHostileBodies: no client calls a tool without being counted, however it writes the body, whose length is known or not. The
// body reaches the upstream byte for byte.
func TestHostileBodies(t *testing.T) {
	if len(hostile) < 60 {
		t.Fatalf("only %d bodies", len(hostile))
	}
	for name, zone := range zonesOfTools {
		h := caddytest.Load(t, `{"rate_limits": {"tools": {"max_events": 1, "window": "1h", `+zone+`}}}`)
		for i, c := range hostile {
			for _, chunked := range []bool{false, true} {
				header := http.Header{"Case": {fmt.Sprint(i, chunked)}}
				again := header.Clone()
				for j := 0; j < len(c.header); j += 2 {
					header.Add(c.header[j], c.header[j+1])
				}
				got := post(t, h, c.body, header, chunked)
				if got == http.StatusOK {
					got = post(t, h, plain, again, false)
				}
				if got != c.want {
					t.Errorf("%s, by %s, chunked %v: %d, want %d", c.name, name, chunked, got, c.want)
				}
				if got == another && upstreamsCall(c.body) {
					t.Errorf("%s, by %s: it is not counted, and an upstream takes it for a call of search", c.name, name)
				}
			}
		}
		caddytest.CleanUp(t, h)
	}
}

// FuzzFields: whatever the body is, the upstream reads the same bytes, and a call that encoding/json finds in it is counted under
// its name, or the request is refused.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"method":"tools/call","params":{"name":"a"}}`, `[{"method":"tools/call","params":{"name":"a"}},{"method":"x"}]`, `{"METHOD":"tools/call"}`,
		`{"method":"x","method":"tools/call"}`, `{"\u006dethod":"tools\/call","params":{"name":"\u0061"}}`, "\xef\xbb\xbf{}", `{"method":"tools/call"}x`, `{"method":"tools/call","params":{"name":"\ud800"}}`,
	} {
		f.Add([]byte(seed))
	}
	h := caddytest.Load(f, `{"rate_limits": {"tools": {"max_events": 1000000, "window": "1h", "key": "{http.rate_limit.json.params.name}",
		"match": [{"vars": {"{http.rate_limit.json.method}": ["tools/call"]}}]}}}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		repl := caddy.NewReplacer()
		r = caddyhttp.PrepareRequest(r, repl, httptest.NewRecorder(), new(caddyhttp.Server))
		status := caddytest.Status(h, r)
		if rest, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(rest, body) {
			t.Fatalf("the upstream reads %q, want %q, %v", rest, body, err)
		}
		if status != http.StatusOK {
			return
		}
		var call struct {
			Method string
			Params struct{ Name string }
		}
		text := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		if json.NewDecoder(bytes.NewReader(text)).Decode(&call) != nil {
			if upstreamsCall(string(body)) {
				t.Fatalf("%q is not counted", body)
			}
			return // another type of a field, which FuzzTexts of package usage compares
		}
		tool, _ := repl.GetString("http.rate_limit.json.params.name")
		counted, _ := repl.GetString("http.rate_limit.zone")
		if call.Method == "tools/call" && (counted != "tools" || tool != call.Params.Name) {
			t.Fatalf("%q is counted in zone %q as a call of %q", body, counted, tool)
		}
	})
}
