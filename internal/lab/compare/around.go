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
// handlers such as map, stores, and where a zone is. What that means for limits only cases or a log can tell. Values are
// not named, because they may be secret.
func around(before, after []byte, zones []adminapi.ZoneDiff) (all []string, err error) {
	var servers [2]map[string]object
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
			maps.DeleteFunc(server, func(option string, _ any) bool { return slices.Contains(aside, option) })
			offline.EachHandler(server, func(name string, h object) {
				if name == "rate_limit" {
					leaveOut(h, zones)
				}
			})
		}
	}
	for _, name := range union(servers[0], servers[1]) {
		was, is := servers[0][name], servers[1][name]
		if !hasLimits(was) && !hasLimits(is) {
			continue
		}
		answers := answersMatter(was) || answersMatter(is)
		parts("server "+name, onTheWay(was, answers), onTheWay(is, answers), func(at string, _, _ any) { all = append(all, at) })
	}
	return all, nil
}

// aside are the options of a server that have no part in what meets a limit.
var aside = strings.Fields("logs metrics read_timeout read_header_timeout read_idle_timeout read_min_rate write_timeout " +
	"write_idle_timeout write_min_rate max_write_chunk idle_timeout keepalive_interval keepalive_idle keepalive_count")

// behind are the handlers whose options matter only to requests that have come to them.
var behind = strings.Fields("reverse_proxy file_server static_response encode templates push tracing log_append timeouts copy_response_headers")

// leaveOut takes out of a rate limit handler what decides about no request, and the options of zones that differ, because
// they are told elsewhere. The names of zones stay where both configs have them, because they may be in another place now.
func leaveOut(h object, zones []adminapi.ZoneDiff) {
	for _, option := range []string{"on_store_error", "log", "log_key", "disable_metrics"} {
		delete(h, option)
	}
	in, _ := h["rate_limits"].(object)
	for _, z := range zones {
		if _, has := in[z.Zone]; has && z.Kind == adminapi.ZoneChanged {
			in[z.Zone] = nil
		} else {
			delete(in, z.Zone)
		}
	}
	if len(in) == 0 {
		delete(h, "rate_limits")
	}
}

// answersMatter reports whether limits of a server may depend on how its handlers answer.
func answersMatter(server object) (matter bool) {
	text, _ := json.Marshal(server)
	invokes := strings.Contains(string(text), `"handler":"invoke"`) // a named route, which may have limits
	matter = strings.Contains(string(text), `"charge":{`) || hasLimits(server["errors"]) || invokes && server["errors"] != nil
	offline.EachHandler(server, func(_ string, h object) { matter = matter || hasLimits(h["errors"]) || invokes && h["errors"] != nil })
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
		if slices.Contains(behind, name) && !passes && !answers {
			return object{"handler": name}
		}
		made := make(object)
		for option, of := range value {
			made[option] = onTheWay(of, answers)
		}
		return made
	}
	return value
}

// parts yields the smallest parts of two configs that differ, each with where it is.
func parts(at string, was, is any, yield func(at string, was, is any)) {
	if reflect.DeepEqual(was, is) {
		return
	}
	within := func(name string, was, is any) { parts(strings.TrimSpace(at+" "+name), was, is, yield) }
	switch was := was.(type) {
	case []any:
		if is, ok := is.([]any); ok && len(was) == len(is) {
			for i := range was {
				within(strconv.Itoa(i+1), was[i], is[i])
			}
			return
		}
	case object:
		// What is called handler in a matcher, such as a query, is a list.
		if is, ok := is.(object); ok && reflect.DeepEqual(was["handler"], is["handler"]) {
			if name, ok := was["handler"].(string); ok {
				at += " (" + name + ")"
			}
			for _, option := range union(was, is) {
				within(option, was[option], is[option])
			}
			return
		}
	}
	yield(at, was, is)
}

// union returns the names in two maps, sorted.
func union[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
