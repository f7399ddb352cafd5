package compare

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

type object = map[string]any

// Around names what differs on the way of requests to their limits, in servers that have any: routes, matchers, and
// handlers such as map. What that means for limits only cases or a log can tell. Values are not named, because they may
// be secret.
func Around(before, after []byte) (all []string, err error) {
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
	}
	names := maps.Clone(servers[0])
	maps.Copy(names, servers[1])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := servers[0][name], servers[1][name]
		if !hasLimits(was) && !hasLimits(is) {
			continue
		}
		for _, option := range union(was, is) {
			if !slices.Contains(aside, option) {
				all = append(all, otherParts("server "+name, option, onTheWay(was[option]), onTheWay(is[option]))...)
			}
		}
	}
	return all, nil
}

// aside are the options of a server that have no part in what meets a limit.
var aside = strings.Fields("logs metrics read_timeout read_header_timeout write_timeout idle_timeout keepalive_interval " +
	"keepalive_idle keepalive_count automatic_https tls_connection_policies protocols listen_protocols max_header_bytes")

// judged are the options of a rate limit handler that are compared with its zones, or that decide about no request.
var judged = strings.Fields("rate_limits store on_store_error log log_key disable_metrics")

// behind are the handlers whose options matter only to requests that have come to them.
var behind = strings.Fields("reverse_proxy file_server static_response encode templates push tracing log_append timeouts copy_response_headers")

// hasLimits reports whether a part of a config has a rate limit handler.
func hasLimits(of object) bool {
	text, _ := json.Marshal(of)
	return strings.Contains(string(text), `"handler":"rate_limit"`)
}

// onTheWay returns a part of a config without what does not decide which requests come to a limit.
func onTheWay(value any) any {
	switch value := value.(type) {
	case []any:
		made := make([]any, len(value))
		for i := range value {
			made[i] = onTheWay(value[i])
		}
		return made
	case object:
		name, _ := value["handler"].(string)
		passes := value["handle_response"] != nil || value["pass_thru"] != nil
		if slices.Contains(behind, name) && !passes {
			return object{"handler": name}
		}
		made := make(object)
		for option, of := range value {
			if name != "rate_limit" || !slices.Contains(judged, option) {
				made[option] = onTheWay(of)
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

// union returns the names in two objects, sorted.
func union(a, b object) []string {
	all := maps.Clone(a)
	if all == nil {
		all = make(object)
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
