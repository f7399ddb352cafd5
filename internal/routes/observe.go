package routes

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// declared are handlers of Caddy whose options say which fields they set in responses. These options are known even
// when the handler is loaded.
var declared = []string{
	"encode", "error", "file_server", "headers", "log_append", "map", "rate_limit", "request_body", "rewrite", "static_response", "subroute", "vars",
}

// Observes reports whether anything but the loaded handler may see placeholders or variables whose names
// contain a text. Where that is not known, it may.
func (r *Routes) Observes(text string) bool {
	return r.unclear() || r.others() || slices.ContainsFunc(r.options, func(o json.RawMessage) bool { return bytes.Contains(o, []byte(text)) })
}

// Answers reports whether a handler may put values of its own into one of some fields of responses, beside
// those that are there. The fields have the form of http.Header's keys.
func (r *Routes) Answers(fields []string) bool {
	return r.unclear() || r.answers || slices.ContainsFunc(r.answered, func(name string) bool {
		return strings.Contains(name, "{") || slices.Contains(fields, textproto.CanonicalMIMEHeaderKey(name))
	})
}

func (r *Routes) unclear() bool { return !r.Known || r.opaque || len(r.Foreign) > 0 }

// others reports whether there is another handler like the loaded one.
func (r *Routes) others() bool { return r.limiters > 1 }

// observe notes what a handler sees, and which fields of responses it sets.
func (r *Routes) observe(name string, config json.RawMessage) {
	if name == "templates" || name == "file_server" && bytes.Contains(config, []byte("browse")) {
		r.opaque = true // the files decide what they look at
		return
	}
	if !slices.Contains(declared, name) {
		r.answers = true
		r.option(config)
		return
	}
	switch name {
	case "rate_limit":
		r.limiters++
		return
	case "subroute": // whose routes are read one by one
		return
	}
	r.option(config)
	var fields struct {
		Headers  http.Header `json:"headers"`
		Response struct {
			Set     http.Header    `json:"set"`
			Add     http.Header    `json:"add"`
			Replace map[string]any `json:"replace"`
		} `json:"response"`
	}
	if err := json.Unmarshal(config, &fields); err != nil && (name == "headers" || name == "static_response") {
		r.opaque = true
	}
	for _, set := range []http.Header{fields.Headers, fields.Response.Set, fields.Response.Add} {
		for field := range set {
			r.answered = append(r.answered, field)
		}
	}
	for field := range fields.Response.Replace {
		r.answered = append(r.answered, field)
	}
}

// option notes the options of a handler or matcher. Text with escapes may mean any other.
func (r *Routes) option(config json.RawMessage) {
	if len(config) == 0 || bytes.Contains(config, []byte(`\u`)) {
		r.opaque = true
	}
	r.options = append(r.options, config)
}
