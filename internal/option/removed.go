package option

import "fmt"

const inAdaptive = "the same in the directive adaptive_concurrency"

// Removed has the options that there were before the first release, and what people use instead, as
// docs/compatibility.md lists them.
var Removed = map[string]string{
	"answers":                "callers of gRPC get a status of gRPC; error routes answer in HTML or JSON-RPC, and on_limit problem in JSON",
	"cost_measured":          "adaptive limits charge time; bytes are in the access log",
	"expires":                "a comment in the config says until when; overrides and bans end with --for",
	"group":                  "a matcher in block, such as header User-Agent *bot*, and a reload",
	"hold":                   inAdaptive,
	"hold_response":          inAdaptive,
	"json_body":              "{http.rate_limit.json.PATH} in key, plan, cost and matchers, such as match vars {http.rate_limit.json.method} tools/call",
	"max":                    inAdaptive,
	"max_concurrency":        inAdaptive,
	"min":                    inAdaptive,
	"min_concurrency":        inAdaptive,
	"near_limit":             "a key is near its limit when 80 % of it are used, in every zone",
	"note":                   "a comment in the config says why; overrides and bans keep --note",
	"over":                   "dry_run, and a route or a header that looks at {http.rate_limit.exceeded.NAME}",
	"over_header":            "dry_run, and header_up with {http.rate_limit.exceeded.NAME} in the reverse_proxy",
	"priority":               inAdaptive,
	"raw_values":             "hosts and paths count in one spelling; for the bytes of the client, set a variable and use {vars.NAME}",
	"repeated_values":        "nothing: a request with different values for a key or plan is refused with 400, in every zone",
	"repeated_values_status": "nothing: the status is 400",
	"reserve":                "two zones of concurrency with the same key, one of all slots and one of fewer for the unimportant requests",
	"unreadable_status":      "nothing: the status is 413, 415 or 400",
	"usage":                  "sum the access log, or the metrics of the zone",
	"widen":                  "ban a network by hand, or add a zone with ipv4_prefix 24",
}

// wasRemoved says so of an option, or returns nothing.
func wasRemoved(name string) string {
	if instead, ok := Removed[name]; ok {
		return fmt.Sprintf("%q was removed: %s (docs/compatibility.md#removed)", name, instead)
	}
	return ""
}
