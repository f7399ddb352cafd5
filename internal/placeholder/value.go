package placeholder

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// maxValue bounds the value of a placeholder for a number. The
// value may be chosen by the client.
const maxValue = 64

// Value returns the value of a placeholder for a request. It must not be empty unless there is a
// fallback. Errors do not show the value, because it may be secret.
func Value(repl *caddy.Replacer, placeholder string, fallback bool) (string, error) {
	text := Text(repl, placeholder)
	switch {
	case text == "" && !fallback:
		return "", fmt.Errorf("{%s} is empty, and there is no fallback", placeholder)
	case len(text) > maxValue:
		return "", fmt.Errorf("{%s} must have at most %d bytes, got %d", placeholder, maxValue, len(text))
	}
	return text, nil
}

// Cut splits text that begins with a placeholder into its name and the rest.
func Cut(text string) (name, rest string, ok bool) {
	inside, ok := strings.CutPrefix(text, "{")
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(inside, "}")
	return name, strings.TrimSpace(rest), ok && name != "" && !strings.Contains(name, "{")
}

// CheckOption checks the placeholder of an option. It accepts one that another module may set,
// because the option has a fallback if nothing does.
func CheckOption(option, placeholder string) error {
	if placeholder == "" {
		return nil
	}
	if _, err := Check(placeholder, ""); err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	return nil
}

// Text returns the value of a placeholder as text.
func Text(repl *caddy.Replacer, placeholder string) string {
	v, _ := repl.Get(placeholder)
	return text(v)
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return caddy.ToString(v)
}
