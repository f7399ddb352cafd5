package option_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// inner is embedded in an object, and the value of a field of it.
type inner struct {
	Depth int `json:"depth,omitempty"`
}

// object has a field of each kind.
type object struct {
	inner
	Name   string         `json:"name,omitempty"`
	On     *bool          `json:"on,omitempty"`
	Share  float64        `json:"share,omitempty"`
	List   []string       `json:"list,omitempty"`
	Map    map[string]int `json:"map,omitempty"`
	Small  int8           `json:"small,omitempty"`
	Inner  inner          `json:"inner,omitzero"`
	Hidden string         `json:"-"`
}

// TestJSON: errors are about options and JSON, not about Go, and misspelled names come with the nearest one.
func TestJSON(t *testing.T) {
	var got object
	if err := option.JSON([]byte(`{"name": "a", "depth": 2, "on": true, "list": ["x"], "inner": {"depth": 3}}`), &got, nil); err != nil {
		t.Fatal(err)
	}
	if want := (object{inner: inner{2}, Name: "a", On: got.On, List: []string{"x"}, Inner: inner{3}}); !reflect.DeepEqual(got, want) || !*got.On {
		t.Errorf("%+v, want %+v", got, want)
	}
	for text, want := range map[string]string{
		`{"name": 1}`:              "name must be a text, got a number",
		`{"on": "yes"}`:            "on must be true or false, got a text",
		`{"share": []}`:            "share must be a number, got a list",
		`{"list": {}}`:             "list must be a list, got an object",
		`{"map": true}`:            "map must be an object, got true or false",
		`{"small": 128}`:           "small must be a whole number, got 128",
		`{"small": 1.5}`:           "small must be a whole number, got 1.5",
		`{"inner": {"depth": ""}}`: "inner.depth must be a whole number, got a text",
		`[]`:                       "the value must be an object, got a list",
		`{"shere": 1}`:             `unknown option "shere"; did you mean "share"?`,
		`{"dept": 1}`:              `unknown option "dept"; did you mean "depth"?`,
		`{"Hidden": ""}`:           `unknown option "Hidden"`,
		`{"inner": {"name": ""}}`:  `unknown option "name"`,
		`{"events": 1}`:            `unknown option "events"; write max_events`,
		`{"qqqqqqqq": 1}`:          `unknown option "qqqqqqqq"`,
		`{"name":`:                 "unexpected EOF",
		``:                         "EOF",
	} {
		if err := option.JSON([]byte(text), new(object), map[string]string{"events": "max_events"}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzJSON: what is accepted is what encoding/json accepts without unknown fields, and an error never names a type
// of Go.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name": "a"}`, `{"nmae": 1}`, `{"small": 1e2}`, `{"inner": {"depth": null}}`, `null`, `{"map": {"a": -1}}`, `[{}]`, "{\"\xff\": 1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want object
		err := option.JSON(text, &got, nil)
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if wanted := d.Decode(&want); (err == nil) != (wanted == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v, %v", got, err, want, wanted)
		}
		if err != nil && strings.Contains(err.Error(), "Go value of type") {
			t.Error(err)
		}
	})
}
