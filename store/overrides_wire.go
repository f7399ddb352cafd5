package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// A store that keeps bytes writes an override as these parts:
//
//   - a byte for the kind, and the end in microseconds since 1970, 0 for none;
//   - for KindLimit: the algorithm, a zero byte, a byte that is 1 if all parameters are the
//     override's and 0 if only the events are, the six parameters, the family, a zero byte;
//   - the rest as JSON, which no script reads.

// overrideHead is the length of kind and end.
const overrideHead = 1 + 8

// Wire returns what a store writes for the override before its end, and after it.
func (o *PreparedOverride) Wire() (kind byte, tail string) {
	rest := o.Override
	if rest.Limit.Location = nil; o.Kind == KindLimit { // the place is always the zone's
		tail = o.Algorithm + "\x00" + o.encoded + "\x00"
	}
	text, _ := json.Marshal(rest) // there are only numbers and text
	return byte(o.Kind), tail + string(text)
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
	kind, until, name := Kind(head[0]), wireUntil(value), ""
	if until != 0 && until <= now {
		return override, nil
	}
	if kind == KindLimit {
		if name, tail, _ = strings.Cut(tail, "\x00"); len(tail) < limitHead {
			return override, errOverride
		}
		_, tail, _ = strings.Cut(tail[limitHead:], "\x00")
	}
	if err := json.Unmarshal([]byte(tail), &override); err != nil {
		return Override{}, errOverride
	}
	override.Kind, override.Algorithm = kind, name
	if until != 0 {
		override.For = time.Duration(until-now) * time.Microsecond
	}
	return override, nil
}
