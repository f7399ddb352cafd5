package option_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// inner is the value of an option, and embedded in another block.
type inner struct {
	Depth int `json:"depth,omitempty" range:"1..5" default:"3"`
}

// block has an option of each kind.
type block struct {
	inner
	Name   string            `json:"name,omitempty" default:"=none"`
	Word   string            `json:"word,omitempty" words:"first|all|off" default:"first"`
	Words  []string          `json:"words,omitempty" words:"one|two"`
	Count  int64             `json:"count,omitempty" caddyfile:"number" range:"0..1000000000000"`
	Share  *float64          `json:"share,omitempty" range:"0..1"`
	For    caddy.Duration    `json:"for,omitempty" range:"1s..3660d" default:"1m"`
	Off    *caddy.Duration   `json:"off,omitempty" range:"1ms.." zero:"off"`
	On     *bool             `json:"on,omitempty"`
	Secret string            `json:"secret,omitempty" secret:"true"`
	Names  map[string]string `json:"names,omitempty" syntax:"<field> <name>" repeats:"true"`
	Header http.Header       `json:"header,omitempty" syntax:"<name> [<value>]" repeats:"true"`
	Inner  *inner            `json:"inner,omitempty"`
	All    map[string]*inner `json:"alls,omitempty" caddyfile:"-"`
}

// inBlock parses a block of a Caddyfile, and returns its JSON, or the error without its place.
func inBlock(t *testing.T, text string) string {
	t.Helper()
	var b block
	d := caddyfile.NewTestDispenser("block {\n" + strings.ReplaceAll(text, "; ", "\n") + "\n}")
	d.Next()
	if err := option.Block(d, "block", &b, nil); err != nil {
		said, _, _ := strings.Cut(err.Error(), ", at ")
		return said
	}
	return written(t, b)
}

func written(t *testing.T, b block) string {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBlock: a line sets an option if its value is one. An error says what the value must be, and what was probably meant.
func TestBlock(t *testing.T) {
	for text, want := range map[string]string{
		"depth 5; name x; word all; words one two; number 7; share 0.5; for 1d": `{"depth":5,"name":"x","word":"all","words":["one","two"],"count":7,"share":0.5,"for":86400000000000}`,
		"on; off off; inner {; depth 1; }":                                      `{"off":0,"on":true,"inner":{"depth":1}}`,
		"on false; off 1ms":                                                     `{"off":1000000,"on":false}`,
		"names a b; names c d; header a; header A b":                            `{"names":{"a":"b","c":"d"},"header":{"A":["*","b"]}}`,
		"names a":                    "names must be <field> <name>, in JSON an object, got 'a'",
		"names a b; names a c":       "names must be <field> <name>, in JSON an object, got 'a c': names already specified: a",
		"header a b c":               "header must be <name> [<value>], in JSON an object, got 'a b c'",
		"share 20%":                  `{"share":0.2}`,
		"depth 6":                    "depth must be a whole number from 1 to 5, got '6'",
		"depth 0":                    "depth must be a whole number from 1 to 5, got '0'",
		"depth":                      "depth must be a whole number from 1 to 5, got nothing: is a variable of the environment empty?",
		"depth 1 2":                  "depth must be a whole number from 1 to 5, got '1 2'",
		"depth 1.5":                  "depth must be a whole number from 1 to 5, got '1.5'",
		"depth 99999999999999999999": "depth must be a whole number from 1 to 5, got '99999999999999999999'",
		"number -1":                  "number must be a whole number from 0 to 1000000000000, got '-1'",
		"count 1":                    "block: unknown option \"count\"; must be one of depth, for, header, inner, name, names, number, off, on, secret, share, word, words",
		"shere 1":                    `block: unknown option "shere"; did you mean "share"?`,
		"share NaN":                  "share must be a number from 0 to 1, got 'NaN'",
		"share 2":                    "share must be a number from 0 to 1, got '2'",
		`name ""`:                    "name must be a text, got '': it is empty",
		"word alll":                  `word must be first, all or off, got 'alll': did you mean "all"?`,
		"words one three":            "words must be one or two, in JSON a list of texts, got 'one three'",
		"for 60":                     "for must be a duration from 1s to 3660d, got '60': it has no unit: write 60s or 60ms",
		"for fast":                   "for must be a duration from 1s to 3660d, got 'fast'",
		"for 1ms":                    "for must be a duration from 1s to 3660d, got '1ms'",
		"off 1us":                    "off must be a duration of at least 1ms, in JSON 0 for off, got '1us'",
		"on yes":                     "on must be true or false, got 'yes'",
		"name a; name b":             "block: name already specified",
		"inner x":                    "block inner: write its options in a block { ... }",
		"name x {; }":                "name takes no block",
		"secret s3cr3t b":            "secret must be a text, got (hidden): quote it if it has spaces",
		"name redis://a:s3cr3t@b c":  "name must be a text, got '(hidden)': quote it if it has spaces",
		"widen 3":                    `block: "widen" was removed: ban a network by hand, or add a zone with ipv4_prefix 24 (docs/compatibility.md#removed)`,
	} {
		if got := inBlock(t, text); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestJSON: errors are about options and JSON, not about Go.
func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"depth": 2, "inner": {"depth": 3}, "alls": {"a": {"depth": 1}, "b": null}}`: `{"depth":2,"inner":{"depth":3},"alls":{"a":{"depth":1},"b":{}}}`,
		`{"off": 0, "for": "90s", "count": 5, "on": null}`:                            `{"count":5,"for":90000000000,"off":0}`,
		`{"words": ["", "` + strings.Repeat("a", 80) + `:s3cr3t@b"]}`:                 "words must be one or two, in JSON a list of texts, got (hidden): one of its texts is empty",
		`{"name": 1}`:                          "name must be a text, got 1",
		`{"on": "yes"}`:                        `on must be true or false, got "yes"`,
		`{"share": []}`:                        "share must be a number from 0 to 1, got []",
		`{"words": {}}`:                        "words must be one or two, in JSON a list of texts, got (hidden)",
		`{"name": [{"a": "s3cr3t"}]}`:          "name must be a text, got (hidden)",
		`{"alls": true}`:                       "alls must be an object, got bool",
		`{"name": "a", "name": ""}`:            `the value has "name" twice`,
		`{"alls":{"a":{},"a":{}}}`:             `alls has "a" twice`,
		`{"inner":{"depth":1,"depth":1}}`:      `inner has "depth" twice`,
		`{"alls":{"a":{"depth":1,"depth":1}}}`: `all "a" has "depth" twice`,
		`{"depth": 128}`:                       "depth must be a whole number from 1 to 5, got 128",
		`{"depth": 0}`:                         "depth must be a whole number from 1 to 5, got 0",
		`{"depth": 1.5}`:                       "depth must be a whole number from 1 to 5, got 1.5",
		`{"inner": {"depth": ""}}`:             `inner.depth must be a whole number from 1 to 5, got ""`,
		`{"inner": 7}`:                         "inner must be an object, got number",
		`{"alls": {"a": {"d": 1}}}`:            `all "a": unknown option "d"; must be one of depth`,
		`{"for": 60}`:                          `for must be a duration from 1s to 3660d, got 60: a number in JSON is nanoseconds: write a text with a unit, such as "1m"`,
		`{"for": "60"}`:                        `for must be a duration from 1s to 3660d, got "60": it has no unit: write 60s or 60ms`,
		`{"secret": 5}`:                        "secret must be a text, got (hidden)",
		`[]`:                                   "the value must be an object, got array",
		`{"shere": 1}`:                         `unknown option "shere"; did you mean "share"?`,
		`{"Share": 1}`:                         `unknown option "Share"; did you mean "share"?`,
		`{"number": 1}`:                        `unknown option "number"; must be one of alls, count, depth, for, header, inner, name, names, off, on, secret, share, word, words`,
		`{"events": 1}`:                        `unknown option "events"; write max_events`,
		`{"name":`:                             "unexpected end of JSON input",
		``:                                     "unexpected end of JSON input",
	} {
		var b block
		got := ""
		if err := option.JSON([]byte(text), &b); err != nil {
			got = err.Error()
		} else {
			got = written(t, b)
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestFill: what is not given has its default, and what is given stays.
func TestFill(t *testing.T) {
	b := block{Word: "off"}
	option.Fill(&b)
	if b.Word != "off" || b.For != caddy.Duration(time.Minute) || b.Depth != 3 || b.Name != "" || b.Inner != nil {
		t.Errorf("%+v", b)
	}
}

// TestInherit: what is not given is as in the other struct.
func TestInherit(t *testing.T) {
	b := block{Word: "off"}
	option.Inherit(&b, &block{Word: "all", Count: 7, Names: map[string]string{"a": "b"}, inner: inner{Depth: 2}})
	if got, want := written(t, b), `{"depth":2,"word":"off","count":7,"names":{"a":"b"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzJSON: what is accepted is what encoding/json reads, and is read again from its own JSON.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name": "a"}`, `{"nmae": 1}`, `{"depth": 1e2}`, `{"inner": {"depth": null}}`, `null`, `{"alls": {"a": -1}}`, `[{}]`, "{\"\xff\": 1}", `{"for":"1d","off":0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, plain, again block
		if err := option.JSON(text, &got); err != nil {
			if strings.Contains(err.Error(), "Go value of type") {
				t.Error(err)
			}
			return
		}
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		first := written(t, got)
		if first != written(t, plain) {
			t.Errorf("%s, and encoding/json reads %s", first, written(t, plain))
		}
		if err := option.JSON([]byte(first), &again); err != nil || written(t, again) != first {
			t.Errorf("%s: %v", first, err)
		}
	})
}
