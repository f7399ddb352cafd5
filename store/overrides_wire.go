package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// In a store that keeps bytes a setting is a byte for its kind and its end in microseconds
// since 1970 (0: none); for a limit the algorithm, a zero byte, a byte that says whether
// the window is its own, the six parameters, the family, and a zero byte; and then the rest
// as JSON, which no script reads. Older versions wrote no family and no zero byte behind it.

// settingHead is how long kind and end are.
const settingHead = 1 + 8

// forPeople is what scripts need not know of a setting.
type forPeople struct {
	Limit *algorithms.Limit `json:"limit,omitempty"`
	Note  string            `json:"note,omitempty"`
}

// Wire is what a store keeps of the setting, but for its end: what stands before that, and
// behind it.
func (o *PreparedOverride) Wire() (kind byte, tail string) {
	var b []byte
	rest := forPeople{Note: o.Note}
	if o.Kind == KindLimit {
		b = append(b, o.algorithm...)
		b = append(b, 0)
		b = append(b, o.told...)
		b = append(b, 0)
		limit := o.Limit
		limit.Location = nil // that of the zone, if any
		rest.Limit = &limit
	}
	text, err := json.Marshal(rest)
	if err != nil {
		text = nil // numbers and text cannot fail
	}
	return byte(o.Kind), string(append(b, text...))
}

var errSetting = errors.New("what the store has is no setting of this version; set or clear it")

// ParseOverride reads what a store has kept, at a time in microseconds since 1970. What has
// ended is none.
func ParseOverride(value string, now int64) (s Override, err error) {
	if value == "" {
		return s, nil
	}
	if len(value) < settingHead || value[0] == byte(KindNone) || int(value[0]) >= len(kinds) {
		return s, errSetting
	}
	kind, until, tail := Kind(value[0]), int64(binary.BigEndian.Uint64([]byte(value[1:settingHead]))), value[settingHead:]
	if until != 0 && until <= now {
		return s, nil
	}
	if kind == KindLimit {
		name := strings.IndexByte(tail, 0)
		end := name + 1 + ownHead
		if name < 0 || len(tail) < end {
			return s, errSetting
		}
		if tail = tail[end:]; !strings.HasPrefix(tail, "{") {
			_, tail, _ = strings.Cut(tail, "\x00")
		}
	}
	var rest forPeople
	if err := json.Unmarshal([]byte(tail), &rest); err != nil || (kind == KindLimit) != (rest.Limit != nil) {
		return s, errSetting
	}
	s = Override{Kind: kind, Note: rest.Note}
	if rest.Limit != nil {
		s.Limit = *rest.Limit
	}
	if until != 0 {
		s.For = time.Duration(until-now) * time.Microsecond
	}
	return s, nil
}
