package cli

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// nanoseconds are the durations in the config of a zone, which are numbers in JSON.
var nanoseconds = regexp.MustCompile(`"(?:window|lease|max_wait|duration|up_to)":([0-9]+)`)

// readable returns the config of a zone in one line, with durations as people write them.
func readable(config json.RawMessage) (string, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, config); err != nil {
		return "", err
	}
	return nanoseconds.ReplaceAllStringFunc(line.String(), func(field string) string {
		digits := nanoseconds.FindStringSubmatch(field)[1]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return field
		}
		return field[:len(field)-len(digits)] + strconv.Quote(duration.Format(time.Duration(n)))
	}), nil
}
