package placeholder

import (
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// varsPrefix is the namespace of a request's variables. Each of them exists as far as Caddy knows,
// and is empty unless something sets it.
const varsPrefix = "http.vars."

// constants are namespaces whose values do not depend on the request.
var constants = []string{"env.", "file.", "system."}

// IsConstant reports whether a placeholder has the same value for all requests.
func IsConstant(name string) bool { return hasAnyPrefix(name, constants) }

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
		if known, err := Check(name, ""); known && err == nil && !IsConstant(name) {
			return name
		}
	}
	return suggest.Nearest(name, shorthands)
}

// shorthands are names in Caddyfiles that are close to what is typed by mistake.
var shorthands = []string{"client_ip", "remote_host", "hostport"}
