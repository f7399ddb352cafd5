package placeholder

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// maxValue bounds the text that a placeholder may have for a number, a window or the
// name of a time zone. It comes from clients, or from what they know of.
const maxValue = 64

// Value is what a placeholder has for a request. Without a fallback it must have
// something. Errors do not show it, for it may be secret.
func Value(repl *caddy.Replacer, placeholder string, fallback bool) (string, error) {
	text := Text(repl, placeholder)
	switch {
	case text == "" && !fallback:
		return "", fmt.Errorf("{%s} is empty, and there is no fallback", placeholder)
	case len(text) > maxValue:
		return "", fmt.Errorf("{%s} has %d bytes", placeholder, len(text))
	}
	return text, nil
}

// Cut splits text that begins with a placeholder.
func Cut(text string) (name, rest string, ok bool) {
	inside, ok := strings.CutPrefix(text, "{")
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(inside, "}")
	return name, strings.TrimSpace(rest), ok && name != "" && !strings.Contains(name, "{")
}

// CheckOption judges the placeholder of an option. One that only another module knows
// is fine: where nothing sets it, there is the fallback.
func CheckOption(option, placeholder string) error {
	if placeholder == "" {
		return nil
	}
	if _, err := Check(placeholder, ""); err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	return nil
}

// Text is the value of a placeholder as text.
func Text(repl *caddy.Replacer, placeholder string) string {
	v, _ := repl.Get(placeholder)
	if s, ok := v.(string); ok {
		return s
	}
	return caddy.ToString(v)
}
