package cost_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/seed-161337e5/caddyratelimit/cost"
)

const (
	least   = 100
	missing = 4000
)

// refused is the cost, in the table, of a request that is refused.
const refused = -1

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func inUTF16(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

// TestClientsCannotLowerTheirCost is the table of ways in which a client could try to pay less than what
// its upstream does for it. Each request asks for 3000 or 5000 tokens as some upstream reads it, or for as
// many as the model has, which is what `missing` is set to. None is booked for less, except for a few that ask for
// less, whichever program reads them.
func TestClientsCannotLowerTheirCost(t *testing.T) {
	q := &cost.Request{JSON: []string{"max_tokens", "options.num_predict"}, Missing: missing, MaxBody: 2000}
	if err := q.Compile(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat(" ", 3000)
	for _, c := range []struct {
		name, body string
		header     string // one more field
		want       int64
	}{
		{"asks for it", `{"max_tokens":3000}`, "", 3000},
		{"asks for little", `{"max_tokens":10}`, "", least},
		{"asks in a fraction", `{"max_tokens":2999.5}`, "", 3000},
		{"asks in an exponent", `{"max_tokens":3e3}`, "", 3000},

		{"does not say", `{}`, "", missing},
		{"0", `{"max_tokens":0}`, "", missing},
		{"-0", `{"max_tokens":-0}`, "", missing},
		{"null", `{"max_tokens":null}`, "", missing},
		{"no body", ``, "", missing},
		{"blank body", " \n", "", missing},
		{"null at the top", `null`, "", refused},
		{"empty array at the top", `[]`, "", refused},
		{"array at the top", `[{"max_tokens":1}]`, "", refused},
		{"says it elsewhere", `{"messages":[{"max_tokens":1}],"x":{"max_tokens":1}}`, "", missing},
		{"says it in a text", `{"prompt":"\"max_tokens\":1,{\"max_tokens\":1}"}`, "", missing},
		{"says it in a name", `{"max_tokens\u0000":1,"max_tokens ":1}`, "", missing},

		{"-1, for no limit", `{"max_tokens":-1}`, "", refused},
		{"text, which Pydantic takes", `{"max_tokens":"3000"}`, "", refused},
		{"true", `{"max_tokens":true}`, "", refused},
		{"array", `{"max_tokens":[3000]}`, "", refused},
		{"object", `{"max_tokens":{}}`, "", refused},
		{"more than any cost", `{"max_tokens":1e13}`, "", refused},
		{"400 digits", `{"max_tokens":` + strings.Repeat("9", 400) + `}`, "", refused},
		{"-3000 and 1", `{"max_tokens":-3000,"max_tokens":1}`, "", refused},

		{"twice, the first counts", `{"max_tokens":5000,"max_tokens":1}`, "", 5000},
		{"twice, the last counts", `{"max_tokens":1,"max_tokens":5000}`, "", 5000},
		{"twice, null at last", `{"max_tokens":1,"max_tokens":null}`, "", missing},
		{"twice, 0 at last", `{"max_tokens":1,"max_tokens":0}`, "", missing},
		{"twice, 0 at first", `{"max_tokens":0,"max_tokens":1}`, "", missing},
		{"twice the same", `{"max_tokens":1,"max_tokens":1}`, "", missing},
		{"object twice", `{"options":{"num_predict":5000},"options":{"num_predict":1}}`, "", 5000},
		{"object twice, null at last", `{"options":{"num_predict":1},"options":null}`, "", missing},
		{"object twice, empty at last", `{"options":{"num_predict":1},"options":{}}`, "", missing},
		{"object twice, empty at first", `{"options":{},"options":{"num_predict":1}}`, "", missing},
		{"object twice, in another case", `{"options":{"num_predict":1},"OPTIONS":{}}`, "", missing},
		{"object is null", `{"max_tokens":1,"options":null}`, "", missing},
		{"object is an array", `{"max_tokens":1,"options":[{"num_predict":1}]}`, "", missing},
		{"object is a text", `{"max_tokens":1,"options":"{}"}`, "", missing},
		{"one of two fields is null", `{"max_tokens":1,"options":{"num_predict":null}}`, "", missing},
		{"one of two fields is 0", `{"max_tokens":0,"options":{"num_predict":1}}`, "", missing},
		{"empty object, which says nothing", `{"max_tokens":1,"options":{}}`, "", least},
		{"other case, which Go takes", `{"max_tokens":1,"MAX_TOKENS":5000}`, "", 5000},
		{"other case alone, which others do not take", `{"MAX_TOKENS":1}`, "", missing},
		{"other case of an object", `{"options":{"num_predict":1},"OPTIONS":{"Num_Predict":5000}}`, "", 5000},
		{"Kelvin sign, which Go takes for k", "{\"max_tokens\":1,\"max_to\u212aens\":5000}", "", 5000},
		{"Kelvin sign alone, in an escape", `{"max_to\u212aens":1}`, "", missing},
		{"long s, which Go takes for s", "{\"max_tokens\":1,\"max_token\u017f\":5000}", "", 5000},
		{"escaped name", `{"\u006dax_tokens":3000}`, "", 3000},
		{"0.5, which is 0 to some", `{"max_tokens":0.5}`, "", missing},
		{"1e-300", `{"max_tokens":1e-300}`, "", missing},
		{"both fields", `{"max_tokens":1,"options":{"num_predict":3000}}`, "", 3001},
		{"byte order mark", "\xef\xbb\xbf" + `{"max_tokens":3000}`, "", 3000},
		{"several texts", `{"max_tokens":1}{"max_tokens":3000}`, "", refused},
		{"rest behind the text", `{"max_tokens":1}x`, "", refused},
		{"comment", `{"max_tokens":1/*,"max_tokens":3000*/}`, "", refused},
		{"comma at the end", `{"max_tokens":1,}`, "", refused},
		{"text that is not UTF-8", "{\"x\":\"\xff\",\"max_tokens\":1}", "", refused},
		{"NaN, which Python takes", `{"temperature":NaN,"max_tokens":1}`, "", refused},
		{"single quotes", `{'max_tokens':3000}`, "", refused},
		{"UTF-16, which Python takes", inUTF16(`{"max_tokens":3000}`), "", refused},
		{"form", `max_tokens=3000`, "Content-Type: application/x-www-form-urlencoded", refused},
		{"multipart", "--x\r\nContent-Disposition: form-data; name=\"max_tokens\"\r\n\r\n3000\r\n--x--", "Content-Type: multipart/form-data; boundary=x", refused},
		{"JSON as text", `{"max_tokens":3000}`, "Content-Type: text/plain", 3000},
		{"UTF-7, which Express takes", `{"max_tokens":1}`, "Content-Type: application/json; charset=utf-7", refused},
		{"Latin-1", `{"max_tokens":1}`, "Content-Type: application/json; charset=\"ISO-8859-1\"", refused},
		{"two charsets", `{"max_tokens":1}`, "Content-Type: application/json; charset=utf-8; charset=utf-7", refused},
		{"charset in pieces", `{"max_tokens":1}`, "Content-Type: application/json; charset*0=utf-; charset*1=7", refused},
		{"two types in a field", `{"max_tokens":1}`, "Content-Type: application/json, text/plain; charset=utf-7", refused},
		{"two types in two fields", `{"max_tokens":1}`, "Content-Type: application/json\nContent-Type: application/json; charset=utf-7", refused},
		{"UTF-8 in the type", `{"max_tokens":3000}`, "Content-Type: application/json; charset=UTF-8", 3000},
		{"ASCII in the type", `{"max_tokens":3000}`, "Content-Type: application/json;charset=us-ascii", 3000},
		{"gzip", gzipped(`{"max_tokens":3000}`), "Content-Encoding: gzip", refused},
		{"gzip that the header hides", gzipped(`{"max_tokens":3000}`), "", refused},
		{"plain, with a coding in the header", `{"max_tokens":1}`, "Content-Encoding: br", refused},
		{"identity", `{"max_tokens":3000}`, "Content-Encoding: Identity", 3000},
		{"beyond what is read", `{"max_tokens":1,` + long + `"max_tokens":3000}`, "", refused},
		{"unclosed", `{"max_tokens":1,"x":` + strings.Repeat("[", 900) + strings.Repeat("]", 899) + `}`, "", refused},
	} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(c.body))
			if chunked {
				r.ContentLength = -1
			}
			for field := range strings.Lines(c.header) {
				name, value, _ := strings.Cut(strings.TrimSpace(field), ": ")
				r.Header.Add(name, value)
			}
			got, refusal := q.Of(r, least)
			if refusal != nil {
				got = refused
			}
			if got != c.want {
				t.Errorf("%s, chunked %v: booked %d, want %d (%v)", c.name, chunked, got, c.want, refusal)
			}
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != c.body {
				t.Errorf("%s: the upstream gets %d bytes of %d, %v", c.name, len(rest), len(c.body), err)
			}
		}
	}
}

// TestRequestCosts: the length and the numbers of a body are added up, and options say what other bodies
// cost.
func TestRequestCosts(t *testing.T) {
	price := int64(7000)
	for _, c := range []struct {
		name    string
		request cost.Request
		body    string
		length  int64 // what the header says, if it is not the length of the body
		header  string
		want    int64
		status  int
	}{
		{"length", cost.Request{BytesPerUnit: 4}, strings.Repeat("x", 1001), 0, "", 251, 0},
		{"length of a chunked body", cost.Request{BytesPerUnit: 4}, strings.Repeat("x", 1001), -1, "", 251, 0},
		{"length below the least cost", cost.Request{BytesPerUnit: 4}, "x", 0, "", least, 0},
		{"length that need not be read", cost.Request{BytesPerUnit: 4, MaxBody: 10}, strings.Repeat("x", 1001), 0, "", 251, 0},
		{"length of a large chunked body", cost.Request{BytesPerUnit: 4, MaxBody: 10}, strings.Repeat("x", 1001), -1, "", 0, 413},
		{"length of an encoded body", cost.Request{BytesPerUnit: 4}, "x", 0, "Content-Encoding: gzip", 0, 415},
		{"both", cost.Request{JSON: []string{"max_tokens*2"}, BytesPerUnit: 1}, `{"max_tokens":200}`, 0, "", 418, 0},
		{"both, missing", cost.Request{JSON: []string{"max_tokens*2"}, BytesPerUnit: 1, Missing: 500}, `{"max_toke":200 }`, 0, "", 517, 0},
		{"too large", cost.Request{JSON: []string{"a"}, MaxBody: 5}, `{"a":500}`, 0, "", 0, 413},
		{"too large, with a price", cost.Request{JSON: []string{"a"}, MaxBody: 5, Unreadable: &price}, `{"a":500}`, 0, "", 7000, 0},
		{"not JSON", cost.Request{JSON: []string{"a"}}, `a=500`, 0, "", 0, 400},
		{"charset", cost.Request{JSON: []string{"a"}}, `{"a":500}`, 0, "Content-Type: text/json; charset=utf-16", 0, 415},
		{"charset, with a price", cost.Request{JSON: []string{"a"}, Unreadable: &price}, `{"a":500}`, 0, "Content-Type: text/json; charset=utf-16", 7000, 0},
		{"charset of a body whose length costs", cost.Request{BytesPerUnit: 4}, strings.Repeat("x", 1001), 0, "Content-Type: text/plain; charset=utf-16", 251, 0},
		{"charset without a body", cost.Request{JSON: []string{"a"}, Missing: 500}, "", 0, "Content-Type: text/json; charset=utf-16", 500, 0},
		{"array, with a price", cost.Request{JSON: []string{"a"}, Unreadable: &price}, `[{"a":500}]`, 0, "", 7000, 0},
		{"not JSON, with a price", cost.Request{JSON: []string{"a"}, Unreadable: new(int64)}, `a=500`, 0, "", least, 0},
	} {
		q := c.request
		if err := q.Compile(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		if c.length != 0 {
			r.ContentLength = c.length
		}
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		got, refusal := q.Of(r, least)
		status := 0
		if refusal != nil {
			status = refusal.Status
		}
		if got != c.want || status != c.status {
			t.Errorf("%s: cost %d, status %d, want %d, %d", c.name, got, status, c.want, c.status)
		}
		if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != c.body {
			t.Errorf("%s: the upstream gets %d bytes of %d, %v", c.name, len(rest), len(c.body), err)
		}
	}
}
