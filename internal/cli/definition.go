package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// nanoseconds are the durations in the config of a zone, which are numbers in JSON.
var nanoseconds = regexp.MustCompile(`"(?:window|lease|max_wait|duration|up_to)":([0-9]+)`)

// shownElsewhere are the options of a zone that its limit, its key and other lines tell.
var shownElsewhere = []string{"key", "max_events", "window", "algorithm", "on_store_error", "overrides", "ban", "dry_run", "enforce", "lend"}

// readable returns the other options in the config of a zone in one line, with durations as people write them. It is
// empty if there are none.
func readable(config json.RawMessage) (string, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, config); err != nil {
		return "", err
	}
	fields := json.NewDecoder(&line)
	if _, err := fields.Token(); err != nil {
		return "", err
	}
	var rest []string
	for fields.More() {
		name, err := fields.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := fields.Decode(&value); err != nil {
			return "", err
		}
		if text := fmt.Sprint(name); !slices.Contains(shownElsewhere, text) {
			rest = append(rest, strconv.Quote(text)+":"+string(value))
		}
	}
	if rest == nil {
		return "", nil
	}
	return nanoseconds.ReplaceAllStringFunc("{"+strings.Join(rest, ",")+"}", func(field string) string {
		digits := nanoseconds.FindStringSubmatch(field)[1]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return field
		}
		return field[:len(field)-len(digits)] + strconv.Quote(duration.Format(time.Duration(n)))
	}), nil
}
