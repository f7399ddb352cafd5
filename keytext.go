package caddyratelimit

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// keyText is a key as JSON can carry it. Keys are any bytes, and JSON has just Unicode.
type keyText struct {
	// Key is the key, with \ufffd for each byte that is no UTF-8.
	Key string `json:"key"`

	// KeyBase64 is the key to the byte, where Key is not.
	KeyBase64 string `json:"key_base64,omitempty"`

	// Truncated is how long the whole key is in bytes, where this is just its beginning.
	Truncated int `json:"key_truncated,omitempty"`
}

// newKeyText shows a key, or the beginning of one that has that length.
func newKeyText(key string, length int) keyText {
	t := keyText{Key: key}
	if !utf8.ValidString(key) {
		t.KeyBase64 = base64.StdEncoding.EncodeToString([]byte(key))
		t.Key = string([]rune(key))
	}
	if length > len(key) {
		t.Truncated = length
	}
	return t
}

// bytes is the key as it was.
func (t keyText) bytes() (string, error) {
	if t.KeyBase64 == "" {
		return t.Key, nil
	}
	key, err := base64.StdEncoding.DecodeString(t.KeyBase64)
	return string(key), err
}

// standing is what a decision says, as JSON. Durations are in seconds.
type standing struct {
	Quota     int64 `json:"quota"`
	Used      int64 `json:"used"`
	Remaining int64 `json:"remaining"`

	// RetryAfter is how long to wait after a refusal, unless Never: the cost is above what
	// the limit can ever grant.
	RetryAfter float64 `json:"retry_after,omitempty"`
	Never      bool    `json:"never,omitempty"`

	// NextAfter is when there is more, and ResetAfter when all of the quota is back, if
	// nothing more comes.
	NextAfter  float64 `json:"next_after"`
	ResetAfter float64 `json:"reset_after"`
}

func newStanding(d algorithms.Decision) *standing {
	n := &standing{
		Quota: d.Quota, Used: max(0, d.Quota-d.Remaining), Remaining: d.Remaining,
		NextAfter: d.NextAfter.Seconds(), ResetAfter: d.ResetAfter.Seconds(),
	}
	if d.RetryAfter == algorithms.Never {
		n.Never = true
	} else {
		n.RetryAfter = d.RetryAfter.Round(time.Microsecond).Seconds()
	}
	return n
}

// refuses tells whether the limit refuses, whatever stands above it. There need be none.
func (n *standing) refuses() bool { return n != nil && (n.RetryAfter > 0 || n.Never) }
