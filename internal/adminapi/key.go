package adminapi

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// KeyText is a key as JSON can carry it. Keys are any bytes, and JSON has just Unicode.
type KeyText struct {
	// Key is the key, with \ufffd for each byte that is no UTF-8.
	Key string `json:"key"`

	// KeyBase64 is the key to the byte, where Key is not.
	KeyBase64 string `json:"key_base64,omitempty"`

	// Truncated is how long the whole key is in bytes, where this is just its beginning.
	Truncated int `json:"key_truncated,omitempty"`
}

// NewKeyText shows a key, or the beginning of one that has that length.
func NewKeyText(key string, length int) KeyText {
	t := KeyText{Key: key}
	if !utf8.ValidString(key) {
		t.KeyBase64 = base64.StdEncoding.EncodeToString([]byte(key))
		t.Key = string([]rune(key))
	}
	if length > len(key) {
		t.Truncated = length
	}
	return t
}

// Bytes is the key as it was.
func (t KeyText) Bytes() (string, error) {
	if t.KeyBase64 == "" {
		return t.Key, nil
	}
	key, err := base64.StdEncoding.DecodeString(t.KeyBase64)
	return string(key), err
}

// QuotaStatus is what a decision says, as JSON. Durations are in seconds.
type QuotaStatus struct {
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

func NewQuotaStatus(d algorithms.Decision) *QuotaStatus {
	n := &QuotaStatus{
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

// Refuses reports whether the limit refuses, whatever overrides and bans say. It is false for
// nil.
func (n *QuotaStatus) Refuses() bool { return n != nil && (n.RetryAfter > 0 || n.Never) }

// KindLimit is the kind of an override that is a limit.
const KindLimit = "limit"

// Key is what the admin API tells of a key of a zone.
type Key struct {
	Zone string `json:"zone"`
	KeyText
	Limit string `json:"limit"`

	// Plan is the plan whose limit the numbers are for.
	Plan string `json:"plan,omitempty"`

	// Assumed is the limit that the numbers are for, where requests bring their own. They
	// may have used something under others.
	Assumed string `json:"assumed,omitempty"`

	// Cost is what a request takes of the limit, and CostFrom the placeholder that says so
	// for each, if there is one: then Cost is what it takes where that is empty, or what was
	// asked for.
	Cost     int64  `json:"cost"`
	CostFrom string `json:"cost_from,omitempty"`

	// Outcome is what would become of a request now, by its key: allowed, refused, shed,
	// banned, dry_run, exempt or rejected. Refused says that the zone would refuse it.
	Outcome string `json:"outcome"`
	Refused bool   `json:"refused"`

	// The numbers are the limit's, in the unit of costs, also under a ban. RetryAfter is for
	// how long the limit refuses the cost; a ban may last longer.
	QuotaStatus

	// Others are the numbers for requests that the zone's reserve is not for.
	Others *QuotaStatus `json:"others,omitempty"`

	Ban      *Ban      `json:"ban,omitempty"`
	Override *Override `json:"override,omitempty"`

	// Overrides says that the zone takes overrides.
	Overrides bool `json:"overrides"`

	// Status is that of a rejection because the key is missing, and BlockStatus that of what
	// the zone blocks, whatever the key has used.
	Status      int `json:"status,omitempty"`
	BlockStatus int `json:"block_status,omitempty"`

	// Lately is how often the key came to this Caddy in the last minutes.
	Lately *Lately `json:"lately,omitempty"`
}

// Ban is a ban of a key.
type Ban struct {
	// By is who banned it: `override` for an operator, or `refusals` for too many of these.
	By string `json:"by"`

	// EndsIn is in seconds; absent if it has no end.
	EndsIn float64 `json:"ends_in,omitempty"`
}

const (
	ByOverride = "override"
	ByRefusals = "refusals"
)

// Override is an override of a key.
type Override struct {
	Kind string `json:"kind"` // limit, exempt or banned

	// Limit is the limit of kind limit. Elsewhere says that it is for plans that count by
	// another algorithm, so that the numbers are not of it.
	Limit     string `json:"limit,omitempty"`
	Elsewhere bool   `json:"elsewhere,omitempty"`

	Note string `json:"note,omitempty"`

	// EndsIn is in seconds; absent if it holds until it is cleared.
	EndsIn float64 `json:"ends_in,omitempty"`
}

// Lately has counts that are sure; there may have been more.
type Lately struct {
	Since    time.Time `json:"since"`
	Requests uint64    `json:"requests"`
	Refused  uint64    `json:"refused"`
}

// KeyError is in a list of keys in place of one that could not be looked up.
type KeyError struct {
	Zone  string `json:"zone"`
	Error string `json:"error"`
}

// Reset is the answer to a reset that may have left something.
type Reset struct {
	Warning string `json:"warning"`
}
