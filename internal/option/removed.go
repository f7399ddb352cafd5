package option

import "fmt"

const inAdaptive = "the same in the directive adaptive_concurrency"

// Removed has the options that there were before the first release, and what people use instead, as
// errors say it.
var Removed = map[string]string{
	"allow_unknown_placeholders": "nothing: only a placeholder that Caddy itself does not know is an error",
	"answers":                    "callers of gRPC get a status of gRPC; error routes answer in HTML or JSON-RPC, and on_limit problem in JSON",
	"block_status":               "handle_errors, for another status than 403",
	"charge_on_response":         "charge { status 401 }",
	"cost_broken_off":            "charge { header X-Cost; broken_off 500 }",
	"cost_header":                "charge { header X-Cost }",
	"cost_measured":              "adaptive limits charge time; bytes are in the access log",
	"cost_request":               "cost {http.rate_limit.json.max_tokens} 4000, where 4000 is the cost of a request that does not say so",
	"cost_response":              "charge { json usage.output_tokens*4 }",
	"dry_run":                    "enforce 0",
	"expires":                    "a comment in the config says until when; overrides and bans end with --for",
	"group":                      "a matcher in block, such as header User-Agent *bot*, and a reload",
	"header_names":               "header_name",
	"hold":                       inAdaptive,
	"hold_response":              inAdaptive,
	"invalid_limit":              "nothing: the status is 403; handle_errors can answer with another one",
	"json_body":                  "{http.rate_limit.json.PATH} in key, plan, cost and matchers, such as match vars {http.rate_limit.json.method} tools/call",
	"max":                        inAdaptive,
	"max_concurrency":            inAdaptive,
	"min":                        inAdaptive,
	"min_concurrency":            inAdaptive,
	"missing_key_challenge":      "nothing: the header WWW-Authenticate says where the key belongs; handle_errors can set another one",
	"missing_key_status":         "missing_key reject 403",
	"near_limit":                 "a key is near its limit when 80 % of it are used, in every zone",
	"note":                       "a comment in the config says why; overrides and bans keep --note",
	"over":                       "enforce 0, and a route or a header that looks at {http.rate_limit.exceeded.NAME}",
	"over_header":                "enforce 0, and header_up with {http.rate_limit.exceeded.NAME} in the reverse_proxy",
	"priority":                   inAdaptive,
	"raw_values":                 "hosts and paths count in one spelling; for the bytes of the client, set a variable and use {vars.NAME}",
	"reject":                     "default reject 403",
	"repeated_values":            "nothing: a request with different values for a key or plan is refused with 400, in every zone",
	"repeated_values_status":     "nothing: the status is 400",
	"require":                    "nothing: on_store_error decides until Redis answers, and the log says that it does not",
	"reserve":                    "two zones of concurrency with the same key, one of all slots and one of fewer for the unimportant requests",
	"unreadable_status":          "nothing: the status is 413, 415 or 400",
	"usage":                      "sum the access log, or the metrics of the zone",
	"widen":                      "ban a network by hand, or add a zone with ipv4_prefix 24",
}

// meant has names that people write instead of others: first those of a Caddyfile, then those of JSON.
var meant = [2]map[string]string{
	{"limit": "rate 100/1m", "response": "status 429, or an error route: handle_errors 429 { ... }", "max_events": "events, or rate 100/1m", "rate_limits": "zone <name> { ... }"},
	{"events": "max_events", "limit": "max_events and window", "rate": "max_events and window", "zones": "rate_limits", "zone": "rate_limits"},
}

// instead says what to write instead of an option that is not there. It returns nothing if that is not known.
func instead(form int, name string) string {
	if text := meant[form][name]; text != "" {
		return fmt.Sprintf("unknown option %q; write %s", name, text)
	}
	if text := Removed[name]; text != "" {
		return fmt.Sprintf("%q was removed: %s (docs/compatibility.md#removed)", name, text)
	}
	return ""
}

// The forms of a config.
const (
	inCaddyfile = iota
	inJSON
)
