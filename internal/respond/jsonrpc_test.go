package respond_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// idsIn returns the ids of an answer as it has them, and whether the answer is a list. All that is in it must be errors of
// JSON-RPC.
func idsIn(t *testing.T, answer []byte) (ids []string, list bool) {
	t.Helper()
	type failed struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct{ Code int }
	}
	var all []failed
	if list = json.Unmarshal(answer, &all) == nil; !list {
		all = make([]failed, 1)
		if err := json.Unmarshal(answer, &all[0]); err != nil {
			t.Fatalf("%v: %q", err, answer)
		}
	}
	for _, one := range all {
		if one.JSONRPC != "2.0" || one.Error.Code == 0 {
			t.Errorf("no error of JSON-RPC: %s", answer)
		}
		ids = append(ids, string(one.ID))
	}
	if !utf8.Valid(answer) {
		t.Errorf("the answer is not in UTF-8: %q", answer)
	}
	return ids, list
}

// TestJSONRPCBatches: the answer to a batch that is refused is a list with an error for each call that wants an answer, with
// the id as the client has written it, or null. Batches without such a call, and long ones, have one error with null.
func TestJSONRPCBatches(t *testing.T) {
	call := func(id string) string { return `{"jsonrpc":"2.0","method":"x","id":` + id + `}` }
	calls := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(call("1")+",", n), ",") + "]"
	}
	const notification, none = `{"jsonrpc":"2.0","method":"x"}`, "one null"
	escaped, long := `"<a>&\u2028`+"\u2028"+`\"\\\ud800"`, `"`+strings.Repeat("x", 254)+`"`
	for _, c := range []struct{ name, body, want string }{
		{"calls", "[" + call("1") + "," + call(`"b"`) + "]", `1 "b"`},
		{"one call", " [ " + call(" 1 ") + " ] ", `1`},
		{"notifications between", "[" + notification + "," + call("2") + "," + notification + "]", `2`},
		{"only notifications", "[" + notification + "," + notification + "]", none},
		{"empty", "[]", none},
		{"twice the same id", "[" + call("1") + "," + call("1") + "]", `1 1`},
		{"numbers", "[" + call("-0") + "," + call("1e400") + "," + call("1.50") + "," + call("123456789012345678901234567890") + "]", `-0 1e400 1.50 123456789012345678901234567890`},
		{"escapes", "[" + call(escaped) + "]", escaped},
		{"null", "[" + call("null") + "," + call("7") + "]", `null 7`},
		{"ids that are none", "[" + call("{\"a\":[1]}") + "," + call("[1]") + "," + call("true") + "," + call("7") + "]", `null null null 7`},
		{"nested deeply", "[" + call(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)) + "," + call("7") + "]", `null 7`},
		{"the longest", "[" + call(long) + "]", long},
		{"a longer one", "[" + call(long[:1]+"x"+long[1:]) + "," + call(strings.Repeat("9", 257)) + "]", `null null`},
		{"not UTF-8", "[" + call("\"\xff\"") + "," + call("7") + "]", `null 7`},
		{"no calls between", `[1,"x",null,[` + call("1") + `],{"id":3},` + call("7") + "]", `null null null null null 7`},
		{"answers of a client", `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{}},` + call("7") + "]", `7`},
		{"the last of two ids", `[{"jsonrpc":"2.0","method":"x","id":1,"id":2}]`, `2`},
		{"another case", `[{"jsonrpc":"2.0","method":"x","ID":1}]`, none},
		{"as many as are answered", calls(100), strings.TrimSpace(strings.Repeat("1 ", 100))},
		{"one more", calls(101), none},
		{"a long body", "[" + call("1") + strings.Repeat(" ", 64<<10) + "]", none},
		{"cut off", "[" + call("1"), none},
		{"two texts", "[" + call("1") + "]" + call("2"), none},
		{"an answer alone", `{"jsonrpc":"2.0","id":1,"result":{}}`, none},
	} {
		h := caddytest.Load(t, `{"answers": ["json-rpc"], "rate_limits": {"z": {"max_events": 0, "window": "1m", "cost_request": {"json": ["tokens"], "missing": 1, "unreadable": 1}}}}`)
		w, err := refused(t, h, func(r *http.Request) {
			post(r, "application/json", c.body)
			r.Header.Set("Mcp-Protocol-Version", "2025-03-26")
		})
		if err != nil {
			t.Fatal(err)
		}
		ids, list := idsIn(t, w.Body.Bytes())
		got := strings.Join(ids, " ")
		if !list {
			got = "one " + got
		}
		if got != c.want {
			t.Errorf("%s: ids %.200s, want %.200s", c.name, got, c.want)
		}
		if status := map[bool]int{true: 429, false: 200}[strings.Trim(got, "onelu ") == ""]; w.Code != status {
			t.Errorf("%s: status %d, want %d", c.name, w.Code, status)
		}
		if sent := len(c.body); w.Body.Len() > 1000+100*1000+sent {
			t.Errorf("%s: %d bytes for %d", c.name, w.Body.Len(), sent)
		}
	}
}

// TestWrongJSONRPCBatch: a batch that json_body refuses is answered call by call, and the status tells that it is wrong. Its
// content type does not have to say that it is one.
func TestWrongJSONRPCBatch(t *testing.T) {
	h := caddytest.Load(t, `{"answers": ["json-rpc"], "rate_limits": {"z": {"max_events": 5, "window": "1m", "key": "{http.rate_limit.json.method}"}}}`)
	w, err := refused(t, h, func(r *http.Request) {
		post(r, "application/json", `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":"2","method":"b"}]`)
	})
	if err != nil {
		t.Fatal(err)
	}
	ids, list := idsIn(t, w.Body.Bytes())
	if w.Code != 400 || !list || fmt.Sprint(ids) != `[1 "2"]` {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// FuzzJSONRPCAnswer: whatever a client sends, the answer is valid JSON, and each id in it is one that the client has written, or null.
func FuzzJSONRPCAnswer(f *testing.F) {
	for _, seed := range []string{
		`[{"jsonrpc":"2.0","method":"x","id":1e400},{"jsonrpc":"2.0","method":"x","id":"\u0061"}]`, `{"jsonrpc":"2.0","method":"x","id":-1}`, `[[]]`, `null`, "[{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":\"\xff\"}]",
	} {
		f.Add([]byte(seed))
	}
	h := caddytest.Load(f, `{"answers": ["json-rpc"], "rate_limits": {"z": {"max_events": 0, "window": "1m", "cost_request": {"json": ["tokens"], "missing": 1, "unreadable": 1}}}}`)
	f.Fuzz(func(t *testing.T, sent []byte) {
		w, err := refused(t, h, func(r *http.Request) {
			post(r, "application/json-rpc", string(sent))
		})
		if err != nil {
			t.Fatal(err)
		}
		ids, _ := idsIn(t, w.Body.Bytes())
		for _, id := range ids {
			if id != "null" && !bytes.Contains(sent, []byte(id)) {
				t.Errorf("%q is not in %q", id, sent)
			}
		}
	})
}
