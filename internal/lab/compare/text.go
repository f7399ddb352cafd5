package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// option describes an option that has changed. Its name is the path to it.
func option(name string, was, is any) string {
	before, now := text(name, was), text(name, is)
	switch {
	case was == nil:
		return fmt.Sprintf("%s now %s", name, now)
	case is == nil:
		return fmt.Sprintf("no %s any longer, was %s", name, before)
	case before == now:
		return fmt.Sprintf("%s now has other values, which are hidden or too long: %s", name, now)
	}
	return fmt.Sprintf("%s now %s, was %s", name, now, before)
}

// secretive finds matchers whose values may be secret, such as a header with a token that exempts. Operators take secrets
// from the environment, and they must not come into logs, or into comments of pull requests.
var secretive = regexp.MustCompile(`^(match|exempt|block) .*\b(header|header_regexp|query|vars|vars_regexp|expression)\b`)

// text formats the value of an option.
func text(name string, value any) string {
	shown, isText := value.(string)
	if value != nil && !isText {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(value) // cannot fail: it comes from JSON
		shown = strings.TrimSpace(b.String())
	}
	const most = 300
	switch {
	case value != nil && secretive.MatchString(name+" "+shown):
		return "(hidden)"
	case len(shown) > most:
		return strings.ToValidUTF8(shown[:most], "") + "..."
	}
	return shown
}

// spell writes durations as people do. In JSON they are nanoseconds.
func spell(in object) {
	for name, value := range in {
		switch value := value.(type) {
		case object:
			spell(value)
		case float64:
			if slices.Contains(config.Durations, name) {
				in[name] = duration.Format(time.Duration(value))
			}
		}
	}
}
