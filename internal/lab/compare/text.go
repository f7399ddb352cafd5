package compare

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// maxText bounds the value of an option in a text.
const maxText = 300

// text formats the value of an option.
func text(value any) string {
	if value == nil {
		return ""
	}
	if s, ok := value.(string); ok {
		return cut(placeholderForm(s))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return "?"
	}
	return cut(strings.TrimSpace(b.String()))
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}

// secretive are matchers whose values may be secret, such as a header with a token that exempts. Operators take
// secrets from the environment, and they must not come into logs, into Redis, or into comments of pull requests.
var secretive = []string{"header", "header_regexp", "query", "vars", "vars_regexp", "expression"}

// matchers are the options with matchers.
var matchers = []string{"match", "exempt", "block"}

// hidden replaces texts in secretive matchers, but for names.
func hidden(value any, secret bool) any {
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(value))
		for name, of := range value {
			made[name] = hidden(of, secret || slices.Contains(secretive, name))
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i, of := range value {
			made[i] = hidden(of, secret)
		}
		return made
	case string:
		if secret {
			return "REDACTED"
		}
	}
	return value
}

// placeholderForm writes a text that is just a placeholder as a Caddyfile does.
func placeholderForm(s string) string {
	if name, ok := strings.CutPrefix(s, "{"); ok && strings.IndexByte(name, '}') == len(name)-1 {
		return "{" + placeholder.Short(name[:len(name)-1]) + "}"
	}
	return s
}
