package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// A store that keeps bytes writes an override as these parts:
//
//   - a byte for the kind, and the end in microseconds since 1970, 0 for none;
//   - for KindLimit: the algorithm, a zero byte, a byte that is 1 if all parameters are the
//     override's and 0 if only the events are, the six parameters, the family, a zero byte;
//   - the rest as JSON, which no script reads.
//
// Older versions wrote neither the family nor the zero byte after it.

// overrideHead is the length of kind and end.
const overrideHead = 1 + 8

// overrideRest is the part of an override that scripts do not need.
type overrideRest struct {
	Limit *algorithms.Limit `json:"limit,omitempty"`
	Note  string            `json:"note,omitempty"`
	Since int64             `json:"since,omitempty"` // in seconds since 1970
	By    string            `json:"by,omitempty"`
}

// Wire returns what a store writes for the override before its end, and after it.
func (o *PreparedOverride) Wire() (kind byte, tail string) {
	var b []byte
	rest := overrideRest{Note: o.Note, By: o.By}
	if !o.Since.IsZero() {
		rest.Since = o.Since.Unix()
	}
	if o.Kind == KindLimit {
		b = append(b, o.algorithm...)
		b = append(b, 0)
		b = append(b, o.encoded...)
		b = append(b, 0)
		limit := o.Limit
		limit.Location = nil // always the zone's
		rest.Limit = &limit
	}
	text, err := json.Marshal(rest)
	if err != nil {
		text = nil // cannot happen: there are only numbers and text
	}
	return byte(o.Kind), string(append(b, text...))
}

// wireUntil returns the end of an override, which has a head.
func wireUntil(value string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(value[1:overrideHead])))
}

var errOverride = errors.New("the stored override is not one of this version: set or clear it")

// ParseOverride reads what a store has written, at a time in microseconds since 1970. If the
// value is empty or the override has ended, the result is of KindNone.
func ParseOverride(value string, now int64) (override Override, err error) {
	if value == "" {
		return override, nil
	}
	if len(value) < overrideHead || value[0] == byte(KindNone) || int(value[0]) >= len(kinds) {
		return override, errOverride
	}
	head, tail := value[:overrideHead], value[overrideHead:]
	kind, until := Kind(head[0]), wireUntil(value)
	if until != 0 && until <= now {
		return override, nil
	}
	if kind == KindLimit {
		name := strings.IndexByte(tail, 0)
		end := name + 1 + limitHead
		if name < 0 || len(tail) < end {
			return override, errOverride
		}
		if tail = tail[end:]; !strings.HasPrefix(tail, "{") {
			_, tail, _ = strings.Cut(tail, "\x00")
		}
	}
	var rest overrideRest
	if err := json.Unmarshal([]byte(tail), &rest); err != nil || (kind == KindLimit) != (rest.Limit != nil) {
		return override, errOverride
	}
	override = Override{Kind: kind, Note: rest.Note, By: rest.By}
	if rest.Since != 0 {
		override.Since = time.Unix(rest.Since, 0).UTC()
	}
	if rest.Limit != nil {
		override.Limit = *rest.Limit
	}
	if until != 0 {
		override.For = time.Duration(until-now) * time.Microsecond
	}
	return override, nil
}
