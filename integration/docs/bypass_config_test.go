//go:build deep

package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// example is a config of the docs, or of this test.
type example struct {
	name   string // "recipes.md: Logins" and, from the second one on, " 2"
	config string // a Caddyfile, or a handler in JSON
	json   bool
}

// examples returns all configs of README, docs and examples.
func examples(t *testing.T) (found []example) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^#+ ([^\n]*)$|^```(caddyfile|json)\n(.*?)^```$")
	var pages []string
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/migrate/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, files...)
	}
	for _, page := range pages {
		heading, number := "", 0
		for _, match := range block.FindAllStringSubmatch(harness.ReadPage(t, page), -1) {
			if match[2] == "" {
				heading, number = match[1], 0
				continue
			}
			e := example{name: filepath.Base(page) + ": " + heading, config: match[3], json: match[2] == "json"}
			if number++; number > 1 {
				e.name += fmt.Sprint(" ", number)
			}
			if !e.json || strings.Contains(e.config, `"handler": "rate_limit"`) && !strings.Contains(e.config, `"apps"`) {
				found = append(found, e)
			}
		}
	}
	for _, pattern := range []string{"../../deploy/Caddyfile*", "../../examples/*/Caddyfile*", "../../testdata/Caddyfile"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			found = append(found, example{name: strings.TrimPrefix(file, "../../"), config: harness.ReadPage(t, file)})
		}
	}
	return found
}

type object = map[string]any

// adapt makes JSON of an example, without the store.
func (e example) adapt(t *testing.T, s *harness.Server) object {
	t.Helper()
	var answer struct{ Result object }
	text := `{"result":{"apps":{"http":{"servers":{"srv0":{"routes":[{"handle":[` + e.config + `]}]}}}}}}`
	if !e.json {
		// This store is of another module, and which store it is makes no difference here.
		config := regexp.MustCompile(`(?m)^\t+store simple \{[^}]*\}$`).ReplaceAllString(e.config, "")
		var err error
		if text, err = s.Admin("POST", "/adapt", "text/caddyfile", config); err != nil {
			t.Fatalf("%s: adapting: %v", e.name, err)
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	return answer.Result
}

// limitedZone is a zone in a config, and what leads to it.
type limitedZone struct {
	name   string
	zone   object
	around []object // one matcher set of each route around
	server string
}

// enforced reports whether the zone refuses anybody.
func (l *limitedZone) enforced() bool { return l.zone["dry_run"] == nil }

// servers returns the HTTP servers of a config.
func servers(config object) object {
	apps, _ := config["apps"].(object)
	http, _ := apps["http"].(object)
	found, _ := http["servers"].(object)
	return found
}

// zonesIn finds the zones of a config, in the order of their names.
func zonesIn(config object) (found []limitedZone) {
	all := servers(config)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		eachHandler(all[name].(object)["routes"], nil, func(handler object, around []object) {
			if handler["handler"] != "rate_limit" {
				return
			}
			zones, _ := handler["rate_limits"].(object)
			for _, zone := range slices.Sorted(maps.Keys(zones)) {
				found = append(found, limitedZone{name: zone, zone: zones[zone].(object), around: around, server: name})
			}
		})
	}
	return found
}

// eachHandler calls a function with each handler of some routes, and a matcher set of each route
// around it.
func eachHandler(routes any, around []object, f func(handler object, around []object)) {
	list, _ := routes.([]any)
	for _, route := range list {
		inside := slices.Clone(around)
		if sets, _ := route.(object)["match"].([]any); len(sets) > 0 {
			inside = append(inside, sets[0].(object))
		}
		handlers, _ := route.(object)["handle"].([]any)
		for _, h := range handlers {
			handler := h.(object)
			f(handler, inside)
			eachHandler(handler["routes"], inside, f)
		}
	}
}

// Limits of zones that a test uses up, and of zones that must not be in the way. Nothing comes back
// during the test.
const (
	small, large = 3, 1_000_000
	endless      = "20h"
)

// fallback is the number behind a placeholder.
var fallback = regexp.MustCompile(`^(\{[^}]*\}) \d+$`)

// resize gives a limit so many events in a window. Slots stay slots. A zone that finds its limit itself is one with
// events, too.
func resize(limit object, events int) {
	if limit["algorithm"] == "adaptive" {
		limit["max_events"], limit["window"] = float64(events), endless
	}
	switch value := limit["max_events"].(type) {
	case float64:
		limit["max_events"] = events
	case string:
		limit["max_events"] = fallback.ReplaceAllString(value, fmt.Sprintf("$1 %d", events))
	}
	if limit["window"] != nil {
		limit["window"] = endless
	}
	if limit["algorithm"] != "concurrency" {
		delete(limit, "algorithm")
	}
	for _, name := range []string{"burst", "refill", "mode", "align", "timezone", "max_wait", "priority", "min_concurrency", "max_concurrency", "hold_response"} {
		delete(limit, name)
	}
}

// prepare renames the zones of a config, gives the one with the name small limits and the others large
// ones, all if the name is empty, and puts the upstream behind all that would answer. It returns
// the servers that have limits.
func prepare(config object, prefix, focus, upstream string) object {
	for _, l := range zonesIn(config) {
		events := small
		if focus != "" && l.name != focus {
			events = large
		}
		resize(l.zone, events)
		plan, _ := l.zone["plan"].(object)
		plans, _ := plan["plans"].(object)
		for _, p := range plans {
			if limit := p.(object); limit["unlimited"] == nil {
				resize(limit, events)
			}
		}
		if _, fixed := l.zone["cost"].(float64); fixed {
			delete(l.zone, "cost")
		}
		for _, name := range []string{"cost_request", "enforce", "lend", "on_store_error"} {
			delete(l.zone, name)
		}
	}
	all := servers(config)
	for name, s := range all {
		server, limits, answers := s.(object), false, false
		eachHandler(server["routes"], nil, func(handler object, _ []object) {
			switch status, _ := handler["status_code"].(float64); {
			case handler["handler"] == "rate_limit":
				limits = true
				for _, option := range []string{"store", "distributed", "storage", "on_store_error", "instances"} {
					delete(handler, option)
				}
				for _, option := range []string{"headers", "header_names", "log", "log_key", "jitter"} { // make no difference
					delete(handler, option)
				}
				handler["log"] = "off"
				zones := make(object)
				for zone, value := range handler["rate_limits"].(object) {
					zones[prefix+zone] = value
				}
				handler["rate_limits"] = zones
			case handler["handler"] == "static_response" && status < 400:
				clear(handler)
				maps.Copy(handler, forward(upstream))
			}
			answers = answers || handler["handler"] == "reverse_proxy"
		})
		if !limits {
			delete(all, name)
			continue
		}
		if !answers {
			last := server["routes"].([]any)[0].(object)["handle"].([]any)
			if site := last[0].(object); site["handler"] == "subroute" {
				site["routes"] = append(site["routes"].([]any), object{"handle": []any{forward(upstream)}})
			} else {
				server["routes"] = append(server["routes"].([]any), object{"handle": []any{forward(upstream)}})
			}
		}
		redial(server, upstream)
		trustProxy(server)
		delete(server, "tls_connection_policies")
		server["automatic_https"] = object{"disable": true}
		server["protocols"] = []any{"h1", "h2c"}
	}
	return all
}

// forward is a handler that sends requests to an upstream.
func forward(upstream string) object {
	return object{"handler": "reverse_proxy", "upstreams": []any{object{"dial": upstream}}}
}

// redial replaces all upstreams by one that speaks HTTP/1.1.
func redial(value any, upstream string) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			redial(e, upstream)
		}
	case object:
		if v["upstreams"] != nil {
			delete(v, "transport")
		}
		for name, e := range v {
			if name == "dial" {
				v[name] = upstream
			}
			redial(e, upstream)
		}
	}
}

// proxyAddress is the address of the proxy in front.
const proxyAddress = "127.0.0.9"

// trustProxy makes the test's proxy the only trusted one. Where the example trusts none, it is
// trusted as docs/behind-a-proxy.md says.
func trustProxy(server object) {
	if server["trusted_proxies"] == nil {
		server["trusted_proxies_strict"] = 1
	}
	server["trusted_proxies"] = object{"source": "static", "ranges": []any{proxyAddress + "/32"}}
}
