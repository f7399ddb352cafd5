package compare

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
)

type object = map[string]any

// around names what differs on the way of requests to their limits, in servers that have any: routes, matchers,
// handlers such as map, and where a zone is. What that means for limits only cases or a log can tell. Values are not
// named, because they may be secret.
func around(before, after []byte, c *adminapi.Comparison) (all []string, err error) {
	var servers [2]map[string]object
	told := toldOf(c)
	for i, config := range [][]byte{before, after} {
		var parsed struct {
			Apps struct {
				HTTP struct{ Servers map[string]object }
			}
		}
		if err := json.Unmarshal(config, &parsed); err != nil {
			return nil, err
		}
		servers[i] = parsed.Apps.HTTP.Servers
		for _, server := range servers[i] {
			offline.EachHandler(server, told.leaveOut)
		}
	}
	for _, name := range union(servers[0], servers[1]) {
		was, is := servers[0][name], servers[1][name]
		if !hasLimits(was) && !hasLimits(is) {
			continue
		}
		answers := answersMatter(was) || answersMatter(is)
		for _, option := range union(was, is) {
			if !slices.Contains(aside, option) {
				a, b := onTheWay(was[option], answers), onTheWay(is[option], answers)
				all = append(all, otherParts("server "+name, option, a, b)...)
			}
		}
	}
	return all, nil
}

// aside are the options of a server that have no part in what meets a limit.
var aside = strings.Fields("logs metrics read_timeout read_header_timeout write_timeout idle_timeout keepalive_interval " +
	"keepalive_idle keepalive_count automatic_https tls_connection_policies protocols listen_protocols max_header_bytes")

// behind are the handlers whose options matter only to requests that have come to them, each with the options that
// decide how it answers.
var behind = map[string][]string{
	"reverse_proxy":         {"headers", "rewrite"},
	"file_server":           {"fs", "root", "hide", "index_names", "browse", "status_code", "canonical_uris"},
	"static_response":       {"status_code", "headers", "abort", "close"},
	"encode":                nil,
	"templates":             nil,
	"push":                  nil,
	"tracing":               nil,
	"log_append":            nil,
	"timeouts":              nil,
	"copy_response_headers": nil,
}

// told are the zones whose differences are told elsewhere, each with what has happened to it.
type told struct {
	zones  map[string]string
	stores bool // the difference between stores, too
}

func toldOf(c *adminapi.Comparison) told {
	t := told{make(map[string]string), c.Stores}
	for _, z := range c.Zones {
		t.zones[z.Zone] = z.Kind
	}
	return t
}

// leaveOut takes out of a rate limit handler what decides about no request, and what is told elsewhere. The names of
// zones stay, because they may be in another place now.
func (t told) leaveOut(name string, h object) {
	if name != "rate_limit" {
		return
	}
	for _, option := range []string{"on_store_error", "log", "log_key", "disable_metrics"} {
		delete(h, option)
	}
	if t.stores {
		delete(h, "store")
	}
	zones, _ := h["rate_limits"].(object)
	for name := range zones {
		switch t.zones[name] {
		case adminapi.ZoneChanged:
			zones[name] = nil
		case adminapi.ZoneNew, adminapi.ZoneGone:
			delete(zones, name)
		}
	}
	if len(zones) == 0 {
		delete(h, "rate_limits")
	}
}

// answersMatter reports whether limits of a server may depend on how its handlers answer.
func answersMatter(server object) (matter bool) {
	text, _ := json.Marshal(server)
	matter = strings.Contains(string(text), `"charge":{`) || hasLimits(server["errors"])
	offline.EachHandler(server, func(_ string, h object) { matter = matter || hasLimits(h["errors"]) })
	return matter
}

// hasLimits reports whether a part of a config has a rate limit handler.
func hasLimits(of any) bool {
	text, _ := json.Marshal(of)
	return strings.Contains(string(text), `"handler":"rate_limit"`)
}

// onTheWay returns a part of a config without what does not decide which requests come to a limit, or, if answers
// matter, count against it.
func onTheWay(value any, answers bool) any {
	switch value := value.(type) {
	case []any:
		made := make([]any, len(value))
		for i := range value {
			made[i] = onTheWay(value[i], answers)
		}
		return made
	case object:
		name, _ := value["handler"].(string)
		passes := value["handle_response"] != nil || value["pass_thru"] != nil
		options, isBehind := behind[name]
		made := make(object)
		for option, of := range value {
			if !isBehind || passes || option == "handler" || answers && slices.Contains(options, option) {
				made[option] = onTheWay(of, answers)
			}
		}
		return made
	}
	return value
}

// otherParts names the smallest parts of an option that differ, behind where it is.
func otherParts(at, option string, was, is any) (all []string) {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	at += " " + option
	switch was := was.(type) {
	case []any:
		is, ok := is.([]any)
		if !ok || len(was) != len(is) {
			break
		}
		for i := range was {
			all = append(all, otherParts(at, strconv.Itoa(i+1), was[i], is[i])...)
		}
		return all
	case object:
		is, ok := is.(object)
		if !ok || was["handler"] != is["handler"] {
			break
		}
		if name, ok := was["handler"].(string); ok {
			at += " (" + name + ")"
			if was["routes"] == nil || is["routes"] == nil {
				break
			}
		}
		for _, option := range union(was, is) {
			all = append(all, otherParts(at, option, was[option], is[option])...)
		}
		return all
	}
	return []string{at}
}

// union returns the names in two maps, sorted.
func union[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
