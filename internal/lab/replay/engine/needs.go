package engine

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// needs is what a config reads of requests and responses.
type needs struct {
	uses      []use
	inner     bool     // error routes have limits
	responses bool     // a charge reads their headers
	looks     []string // the zones whose refusals something outside of zones looks at, by a placeholder
	maxKeys   int      // of the memory store
}

// use is a part of requests or responses that is used in a place.
type use struct {
	zone, option string // empty outside of zones
	what         string // in words
	header       string // that has it; empty if no log has it
	response     bool   // it is of the response
	assumed      string // if the log does not have it
}

const (
	empty     = "treated as empty"
	notSent   = "treated as not sent where the log lacks it"
	notJudged = "such requests are not judged in this zone"
)

// decides reports whether the option says which requests a zone counts together, and by which limit.
func (u *use) decides() bool { return u.assumed == notJudged }

// ofBody reports whether it is a field of the body.
func (u *use) ofBody() bool { return strings.HasPrefix(u.what, "{"+placeholder.JSONPrefix) }

// needsOf finds out what a config reads.
func needsOf(c *offline.Config) *needs {
	n := &needs{maxKeys: memorystore.DefaultMaxKeys}
	n.walk(c.HTTP, use{})
	for _, of := range c.Stores {
		store, _ := of.(map[string]any)
		if most, ok := store["max_keys"].(float64); ok && most > 0 {
			n.maxKeys = int(most)
		}
	}
	return n
}

// walk goes through the JSON of a part of the config. In says where that is.
func (n *needs) walk(value any, in use) {
	switch v := value.(type) {
	case string:
		n.text(v, in)
	case []any:
		for _, one := range v {
			n.walk(one, in)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			n.member(name, v[name], in)
		}
	}
}

// limits finds handlers that limit requests, or have routes elsewhere that may.
var limits = regexp.MustCompile(`"handler":"(?:rate_limit|invoke)"`)

// member goes through a member of an object.
func (n *needs) member(name string, value any, in use) {
	if in.zone != "" && in.option == "" {
		in.option = name
	}
	n.text(name, in)
	fields, _ := value.(map[string]any)
	names := slices.Sorted(maps.Keys(fields))
	switch name {
	case "rate_limits":
		for _, zone := range names {
			n.walk(fields[zone], use{zone: zone})
		}
		return
	case "charge":
		n.responses = true
		n.charge(fields, in)
		return
	case "header", "header_regexp":
		for _, field := range names {
			n.addHeader(field, in)
		}
	case "errors":
		text, _ := json.Marshal(value)
		n.inner = n.inner || limits.Match(text)
	}
	n.walk(value, in)
}

// charge notes what a zone reads of responses.
func (n *needs) charge(charge map[string]any, in use) {
	add := func(option, what, header, assumed string) {
		n.add(use{zone: in.zone, option: option, what: what, header: header, response: true, assumed: assumed})
	}
	if charge["json"] != nil {
		add("charge json", "the body of the response", "", "each request costs what it does without this option")
	}
	if name, ok := charge["header"].(string); ok {
		add("charge header", "response header "+http.CanonicalHeaderKey(name)+", which this option removes before the log", "", notSent)
	}
	fields, _ := charge["match_header"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		name = http.CanonicalHeaderKey(name)
		add("charge match_header", "response header "+name, name, notSent)
	}
}

// celHeader finds the headers in expressions.
var celHeader = regexp.MustCompile(`\bheader(?:_regexp)?\(\{?\s*['"]([\w-]+)['"]`)

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// text notes the placeholders in a text.
func (n *needs) text(text string, in use) {
	for _, found := range celHeader.FindAllStringSubmatch(text, -1) {
		n.addHeader(found[1], in)
	}
	for _, braced := range placeholders.FindAllString(text, -1) {
		name, _, _ := strings.Cut(strings.Trim(braced, "{}"), ":") // without a default value
		if field, ok := strings.CutPrefix(name, "http.request.header."); ok {
			n.addHeader(field, in)
		} else if field, ok := strings.CutPrefix(name, "http.request.cookie."); ok {
			in.what, in.header = "cookie "+field, "Cookie"
			n.add(in)
		} else if zone, ok := strings.CutPrefix(name, "http.rate_limit.exceeded."); ok {
			n.looks = append(n.looks, zone)
		} else if isLost(name) {
			in.what, in.header = "{"+placeholder.Short(name)+"}", ""
			n.add(in)
		}
	}
}

// isLost reports whether no log has the value of a placeholder.
func isLost(name string) bool {
	switch {
	case name == "http.auth.user.id":
		return false
	case name == "http.request.body", name == "http.request.body_base64", name == "http.request.uuid":
		return true
	}
	return slices.ContainsFunc([]string{"http.auth.user.", "http.request.tls.", "http.reverse_proxy.", placeholder.JSONPrefix, "time."},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func (n *needs) addHeader(name string, in use) {
	in.header = http.CanonicalHeaderKey(name)
	in.what = "header " + in.header
	n.add(in)
}

func (n *needs) add(in use) {
	switch {
	case in.assumed != "":
	case in.zone != "" && (slices.Contains([]string{"key", "plan", "match"}, in.option) || in.ofBody()):
		in.assumed = notJudged
	default:
		in.assumed = empty
	}
	if !slices.Contains(n.uses, in) {
		n.uses = append(n.uses, in)
	}
}
