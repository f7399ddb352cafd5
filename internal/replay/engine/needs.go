package engine

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// needs is what a config reads of requests and responses.
type needs struct {
	uses   []use
	opaque bool     // modules that are not known may read any header
	hosts  []string // that matchers name, in order
	errors bool     // there are error routes
	looks  []string // the zones whose refusals something outside of zones looks at, by a placeholder
	inner  bool     // some of them have limits
	stores []string // other than memory
	max    int      // max_keys of the memory store
}

// use is a part of a request that is used in a place.
type use struct {
	zone, option string // empty outside of zones
	part         part
	name         string // of the header or cookie, or the placeholder
}

// part is a part of a request or its response.
type part string

const (
	requestHeader  part = "header"
	cookie         part = "cookie"
	responseHeader part = "response header"
	other          part = "placeholder" // that only a real request has
)

// The names of other parts that are no placeholders.
const (
	requestBody  = "the body of the request"
	responseBody = "the body of the response"
)

// needsOf finds out what a config reads.
func needsOf(config []byte) (*needs, error) {
	var parsed struct {
		Apps struct {
			HTTP any `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	n := new(needs)
	n.walk(parsed.Apps.HTTP, use{})
	return n, nil
}

// These modules read no header but those that their options name.
var (
	knownHandlers = strings.Fields("rate_limit reverse_proxy file_server static_response subroute vars map headers rewrite encode request_body " +
		"invoke templates authentication error tracing log_append push acme_server")
	knownMatchers = strings.Fields("host path path_regexp method query header header_regexp protocol not remote_ip client_ip vars vars_regexp")
)

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
		n.object(v, in)
	}
}

func (n *needs) object(v map[string]any, in use) {
	if name, ok := v["handler"].(string); ok {
		n.opaque = n.opaque || !slices.Contains(knownHandlers, name)
		if name == "rate_limit" {
			n.limiter(v)
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		inner := v[name]
		switch name {
		case "match", "exempt", "block", "not":
			n.matchers(inner)
		case "header", "header_regexp":
			if fields, ok := inner.(map[string]any); ok {
				for _, field := range slices.Sorted(maps.Keys(fields)) {
					n.add(in, requestHeader, http.CanonicalHeaderKey(field))
				}
			}
		case "errors":
			n.errors = true
			text, _ := json.Marshal(inner)
			n.inner = n.inner || strings.Contains(string(text), `"handler":"rate_limit"`)
		case "host":
			if hosts, ok := inner.([]any); ok {
				for _, host := range hosts {
					if text, ok := host.(string); ok && !strings.ContainsAny(text, "*{") {
						n.hosts = append(n.hosts, text)
					}
				}
			}
		}
		n.text(name, in)
		n.walk(inner, in)
	}
}

// limiter goes through a rate limit handler.
func (n *needs) limiter(v map[string]any) {
	if store, ok := v["store"].(map[string]any); ok {
		if name, _ := store["backend"].(string); name != "memory" && !slices.Contains(n.stores, name) {
			n.stores = append(n.stores, name)
		} else if max, ok := store["max_keys"].(float64); ok {
			n.max = int(max)
		}
	}
	zones, _ := v["rate_limits"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		options, _ := zones[name].(map[string]any)
		for _, option := range slices.Sorted(maps.Keys(options)) {
			in := use{zone: name, option: option}
			switch inner := options[option]; option {
			case "charge":
				charge, _ := inner.(map[string]any)
				n.charge(in, charge)
			default:
				n.walk(map[string]any{option: inner}, in)
			}
		}
	}
}

// charge notes what a zone reads of responses.
func (n *needs) charge(in use, charge map[string]any) {
	if charge["json"] != nil {
		in.option = chargeJSON
		n.add(in, other, responseBody)
	}
	if field, ok := charge["header"].(string); ok {
		in.option = chargeHeader
		n.add(in, responseHeader, http.CanonicalHeaderKey(field))
	}
	in.option = "charge match_header"
	fields, _ := charge["match_header"].(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		n.add(in, responseHeader, http.CanonicalHeaderKey(field))
	}
}

// The options that read the cost of a response.
const (
	chargeJSON   = "charge json"
	chargeHeader = "charge header"
)

// matchers notes matchers that may read anything.
func (n *needs) matchers(sets any) {
	all, _ := sets.([]any)
	for _, set := range all {
		modules, _ := set.(map[string]any)
		for name := range modules {
			n.opaque = n.opaque || !slices.Contains(knownMatchers, name)
		}
	}
}

// celHeader finds the headers in expressions.
var celHeader = regexp.MustCompile(`\bheader(?:_regexp)?\(\{?\s*['"]([\w-]+)['"]`)

// text notes the placeholders in a text.
func (n *needs) text(text string, in use) {
	for _, found := range celHeader.FindAllStringSubmatch(text, -1) {
		n.add(in, requestHeader, http.CanonicalHeaderKey(found[1]))
	}
	for _, braced := range placeholders.FindAllString(text, -1) {
		name, _, _ := strings.Cut(strings.Trim(braced, "{}"), ":") // without a default value
		if field, ok := strings.CutPrefix(name, "http.request.header."); ok {
			n.add(in, requestHeader, http.CanonicalHeaderKey(field))
		} else if field, ok := strings.CutPrefix(name, "http.request.cookie."); ok {
			n.add(in, cookie, field)
		} else if zone, ok := strings.CutPrefix(name, "http.rate_limit.exceeded."); ok {
			n.looks = append(n.looks, zone)
		} else if isLost(name) {
			n.add(in, other, placeholder.Short(name))
		}
	}
}

// isLost reports whether no log has the value of a placeholder.
func isLost(name string) bool {
	user, isUser := strings.CutPrefix(name, "http.auth.user.")
	return name == "http.request.body" || name == "http.request.body_base64" || name == "http.request.uuid" || isUser && user != "id" ||
		strings.HasPrefix(name, "http.request.tls.client.") || strings.HasPrefix(name, "http.reverse_proxy.") || strings.HasPrefix(name, placeholder.JSONPrefix) || strings.HasPrefix(name, "time.")
}

func (n *needs) add(in use, p part, name string) {
	in.part, in.name = p, name
	if !slices.Contains(n.uses, in) {
		n.uses = append(n.uses, in)
	}
}

// host returns the host of requests whose log has none.
func (n *needs) host() string {
	if len(n.hosts) == 0 {
		return "localhost"
	}
	return n.hosts[0]
}

// fields returns the headers of requests and responses that must be read; nil for all.
func (n *needs) fields(clientIP []string) (request, response []string) {
	response = []string{}
	request = append([]string{"User-Agent", "Cookie", "Content-Length"}, clientIP...)
	for _, u := range n.uses {
		switch u.part {
		case requestHeader:
			request = append(request, u.name)
		case responseHeader:
			response = append(response, u.name)
		}
	}
	if n.errors { // which do not run for callers of gRPC
		request = append(request, "Content-Type")
	}
	slices.Sort(request)
	if n.opaque {
		return nil, response
	}
	return slices.Compact(request), response
}
