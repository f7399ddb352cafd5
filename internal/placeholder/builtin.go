package placeholder

import (
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// varsPrefix is the namespace of a request's variables. Each of them exists as far as Caddy knows,
// and is empty unless something sets it.
const varsPrefix = "http.vars."

// builtInVars are the variables that Caddy's server sets.
var builtInVars = []string{"client_ip", "trusted_proxy", "start_time", "original_request", "uuid", "unhandled", "rate_limit"}

// IsBuiltIn reports whether Caddy sets a placeholder by itself, or by the modules whose namespace it
// is in. Users are authenticated by modules that are not in every config, so their placeholders are
// not built in.
func IsBuiltIn(name string) bool {
	if variable, ok := strings.CutPrefix(name, varsPrefix); ok {
		return slices.Contains(builtInVars, variable)
	}
	if strings.HasPrefix(name, "http.auth.") {
		return false
	}
	known, err := Check(name, "")
	return known || err != nil
}

// constants are namespaces whose values do not depend on the request.
var constants = []string{"env.", "file.", "system."}

// IsConstant reports whether a placeholder has the same value for all requests.
func IsConstant(name string) bool { return hasAnyPrefix(name, constants) }

// Similar returns the placeholder that a name most likely means, "" if there is none. The
// others are those that the config sets.
func Similar(name string, others []string) string {
	if similar := suggest.Nearest(name, others); similar != "" {
		return similar
	}
	if similar := similarTo(name); similar != "" {
		return similar
	}
	trimmed := strings.ToLower(strings.Trim(name, "$ "))
	if known, err := Check(trimmed, ""); known && err == nil && trimmed != name {
		return trimmed
	}
	return Meant(strings.ReplaceAll(trimmed, ".", "_"))
}

// Meant returns the placeholder that text without braces was most likely meant to be, "" if there is
// none.
func Meant(text string) string {
	name := strings.Trim(text, "{}$% ")
	if name == "" {
		return ""
	}
	if right, ok := renamed[name]; ok {
		return right
	}
	if full := Full(name); full != name {
		return full
	}
	if strings.Contains(name, ".") {
		if known, err := Check(name, ""); known && err == nil {
			return name
		}
	}
	return suggest.Nearest(name, shorthands)
}

// shorthands are names in Caddyfiles that are close to what is typed by mistake.
var shorthands = []string{"client_ip", "remote_host", "hostport"}
