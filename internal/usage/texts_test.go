package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func mustParseTexts(t testing.TB, paths ...string) *Texts {
	t.Helper()
	texts, err := ParseTexts(paths)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestPathsOfTexts: errors show the path and the fix.
func TestPathsOfTexts(t *testing.T) {
	for path, want := range map[string]string{
		"a*2":                   `"a*2": a path of a text has no weight`,
		"a|a":                   `"a|a": the path a is there twice`,
		"$.a":                   `"$.a": a path is just names with dots between, such as usage.total_tokens, without $, brackets or quotes`,
		"":                      `"": "" is not a path: write names with dots between, such as usage.total_tokens`,
		"a a":                   `"a a": a path is just names with dots between, such as usage.total_tokens, without $, brackets or quotes`,
		strings.Repeat("a", 65): fmt.Sprintf(`%q: a path has at most 8 names of at most 64 bytes`, strings.Repeat("a", 65)),
		"a.b.c.d.e.f.g.h.i.j.k": `"a.b.c.d.e.f.g.h.i.j.k": a path has at most 8 names of at most 64 bytes`,
	} {
		if _, err := ParseTexts([]string{path}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if _, err := ParseTexts(strings.Fields("a b c d e f g h i")); err == nil || err.Error() != "at most 8 paths are read, got 9" {
		t.Error(err)
	}
}

// TestNamesOfOneText: a text that clients name differently is read under each name, and must be the same under all that are there.
func TestNamesOfOneText(t *testing.T) {
	texts := mustParseTexts(t, "max_tokens|options.num_predict")
	for body, want := range map[string]string{
		`{}`: "", `{"max_tokens":5}`: "5", `{"options":{"num_predict":7}}`: "7", `{"max_tokens":5,"options":{"num_predict":5.0}}`: "5",
		`{"max_tokens":null,"options":{"num_predict":7}}`:  "7",
		`{"max_tokens":5,"options":{"num_predict":7}}`:     "error",
		`{"max_tokens":5,"Options":{"num_predict":7}}`:     "error",
		`{"max_tokens":-1,"options":{"num_predict":null}}`: "-1",
	} {
		got, err := texts.Read([]byte(body))
		if err != nil {
			got[0] = "error"
		}
		if got[0] != want {
			t.Errorf("%s: %q, %v; want %q", body, got, err, want)
		}
	}
}

// TestWholeNumbers: a number has one text, however it is written, or none.
func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e9": "0", "-0.00e-5": "0", "1": "1", "1.0": "1", "1e0": "1", "1E+0": "1", "10e-1": "1", "0.1e1": "1", "100e-2": "1",
		"-7": "-7", "-70e-1": "-7", "12.5e1": "125", "9007199254740992": "9007199254740992", "9.007199254740992e15": "9007199254740992", "1e15": "1000000000000000",
		"9007199254740993": "", "1e16": "", "1e400": "", "1e99999999999": "", "1e-99999999999": "", "0.5": "", "1.00000000000000000001": "", "5e-1": "", "99999999999999999999": "",
	} {
		if got, _ := wholeNumber([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// asGo returns the text that encoding/json has at a path of an object; false if it is none.
func asGo(object map[string]any, path string) (string, bool) {
	names := strings.Split(path, ".")
	var value any = object
	for _, name := range names {
		inner, _ := value.(map[string]any)
		value = inner[name]
	}
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		f, err := v.Float64()
		return strconv.FormatFloat(f+0, 'f', -1, 64), err == nil && f == math.Trunc(f)
	}
	return "", false
}

// FuzzTexts: what is read in a text is what encoding/json reads, or an error.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		`{"method":"tools/call","params":{"name":"search","arguments":{"name":"x"}},"id":1}`, `[{"method":"a"},{"method":"b","params":null}]`, `[]`, `{}`, `null`, `[1]`, `[[{}]]`,
		`{"\u006dethod":"tools\/call"}`, `{"method":1e2}`, `{"method":-0}`, `{"method":1.5}`, `{"method":true,"params":[]}`, `{"Method":"a"}`, `{"method":"a","method":"b"}`,
		`{"method":"\ud83d\ude00"}`, `{"method":"\ud83d"}`, `{"method\u0000":1}`, "{\"\\u006dethod\\u0000\":1,\"x\":2}", `{"params":{"name":["a"]}}`, ` { "method" : "x" } `, `{"params":{"name":"a"},"params":{}}`,
		`{"method":"` + strings.Repeat("x", 257) + `"}`, `{"x":"\"method\":\"a\"","method":"b"}`, "{\"method\":\"\u212a\",\"params\":{\"\u017fname\":1}}", `{"method":9007199254740993}`, `{"params":{"name":false}}`,
	} {
		f.Add([]byte(seed))
	}
	texts := mustParseTexts(f, "method", "params.name")
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || !utf8.Valid(body) {
			return
		}
		body = bytes.TrimSpace(body)
		got, err := texts.Read(body)
		if err != nil {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return // deeper than encoding/json goes
		}
		object, ok := value.(map[string]any)
		if !ok {
			t.Fatal("the text is no object, and there was no error")
		}
		for i, path := range texts.Paths() {
			if want, ok := asGo(object, path); !ok || got[i] != want {
				t.Fatalf("%s: %q, want %q, %v", path, got[i], want, ok)
			}
		}
	})
}
