package adminapi

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// KeyText is a key in JSON. A key can have any bytes, but JSON only has Unicode.
type KeyText struct {
	// Key is the key, with \ufffd for each byte that is not UTF-8.
	Key string `json:"key"`

	// KeyBase64 is the exact key. It is absent if Key is exact.
	KeyBase64 string `json:"key_base64,omitempty"`

	// Parts are the values of the key's placeholders, if there are several, with \ufffd for each byte
	// that is not UTF-8. Of a truncated key these are the parts in its beginning.
	Parts []string `json:"parts,omitempty"`

	// Truncated is the length of the whole key in bytes. It is absent unless this is just the
	// beginning of the key.
	Truncated int `json:"key_truncated,omitempty"`
}

// NewKeyText returns the text of a key, or of the beginning of a key that is length bytes long.
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

// Bytes returns the exact key.
func (t KeyText) Bytes() (string, error) {
	if t.KeyBase64 == "" {
		return t.Key, nil
	}
	key, err := base64.StdEncoding.DecodeString(t.KeyBase64)
	return string(key), err
}

// QuotaStatus has the numbers of a decision. Durations are in seconds.
type QuotaStatus struct {
	Quota     int64 `json:"quota"`
	Used      int64 `json:"used"`
	Remaining int64 `json:"remaining"`

	// RetryAfter is how long to wait after a refusal. It is absent if Never is true: then the cost
	// is more than the limit can ever allow.
	RetryAfter float64 `json:"retry_after,omitempty"`
	Never      bool    `json:"never,omitempty"`

	// NextAfter is the time until there is more quota, and ResetAfter the time until all of it is
	// back, if there are no more requests.
	NextAfter  float64 `json:"next_after"`
	ResetAfter float64 `json:"reset_after"`
}

// NewQuotaStatus returns the numbers of a decision.
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

// Refuses reports whether the limit refuses the request, whatever overrides and bans say.
func (n *QuotaStatus) Refuses() bool { return n.RetryAfter > 0 || n.Never }

// The kinds of overrides with a limit, and of bans.
const (
	KindLimit  = "limit"
	KindBanned = "banned"
)

// Key is the state of a key in a zone.
type Key struct {
	Zone string `json:"zone"`
	KeyText
	Limit string `json:"limit"`

	// Rollout is as in Zone.
	Rollout string `json:"rollout,omitempty"`

	// Plan is the plan that the numbers are for. Default says that it is for requests whose plan is empty or unknown, and
	// Unlimited that it has no limit, so that there are no numbers.
	Plan      string `json:"plan,omitempty"`
	Default   bool   `json:"default,omitempty"`
	Unlimited bool   `json:"unlimited,omitempty"`

	// Plans has the state under each plan of the zone. Then the other numbers are those of the default plan, or else of a plan
	// that refuses the key, or of any. PlanFrom is the text with placeholders that names the plan of a request.
	Plans    []Key  `json:"plans,omitempty"`
	PlanFrom string `json:"plan_from,omitempty"`

	// Cost is the cost that the numbers are for: that of the last request of the key that the limit has refused on this
	// instance, if it cost more than usual (CostLast), or else the zone's. CostFrom is the placeholder that a request's cost
	// comes from; then the zone's cost is the fallback.
	Cost     int64  `json:"cost"`
	CostFrom string `json:"cost_from,omitempty"`
	CostLast bool   `json:"cost_last,omitempty"`

	// Assumed is the limit that the numbers are for, if limits depend on the request. The key may
	// have used something under other limits.
	Assumed string `json:"assumed,omitempty"`

	// Outcome is the outcome that a request with this key would have now: allowed, limited, banned, dry_run, exempt or
	// rejected. Refused says that the zone would refuse the request.
	Outcome string `json:"outcome"`
	Refused bool   `json:"refused"`

	// Why says why the zone allows or refuses the key, and until when. Commands are what changes that.
	Why      string    `json:"why,omitempty"`
	Commands []Command `json:"commands,omitempty"`

	// Until is when the next request passes. It is absent if one passes now, or none ever.
	Until time.Time `json:"until,omitzero"`

	// The numbers are those of the limit, in the unit of costs, even if the key is banned.
	QuotaStatus

	// Slots says that what is used is the number of running requests, so that RetryAfter and
	// ResetAfter are the latest times at which they end.
	Slots bool `json:"slots,omitempty"`

	Ban *Ban `json:"ban,omitempty"`

	// Refusals says how near the key is to a ban, in zones that ban keys.
	Refusals *Refusals `json:"refusals,omitempty"`

	Override *Override `json:"override,omitempty"`

	// Overrides says that the zone has the option overrides.
	Overrides bool `json:"overrides"`

	// Status is the status of requests that are rejected because they have no key, and BlockStatus that of requests that the zone
	// blocks, whatever the key has used.
	Status      int `json:"status,omitempty"`
	BlockStatus int `json:"block_status,omitempty"`

	// Error is why the zone could not be asked. Then there is nothing else but its name.
	Error string `json:"error,omitempty"`

	// Lately counts the requests with this key on this instance in the last minutes.
	Lately *Lately `json:"lately,omitempty"`
}

// Command is what to run on the server, one after the other, to some end.
type Command struct {
	To  string   `json:"to"` // such as "let it through now"
	Run []string `json:"run"`
}

// Ban is a ban of a key.
type Ban struct {
	// By says what banned the key: ByOverride or ByRefusals.
	By string `json:"by"`

	// Until is absent if the ban has no end.
	Until time.Time `json:"until,omitzero"`
}

// Refusals are the refusals of a key that count towards a ban. Durations are in seconds.
type Refusals struct {
	Count  int64   `json:"count"`
	Of     int64   `json:"of"`     // as many begin a ban
	Within float64 `json:"within"` // in this time

	// NextBan is how long the next ban is, and Begins says that the next request begins it, because it is refused.
	NextBan float64 `json:"next_ban"`
	Begins  bool    `json:"begins,omitempty"`
}

const (
	// ByOverride is a ban by an operator.
	ByOverride = "override"

	// ByRefusals is a ban by the zone, because the key was refused too often.
	ByRefusals = "refusals"
)

// Override is an override of a key.
type Override struct {
	Kind string `json:"kind"` // limit, exempt or banned

	// Limit is the limit of an override of kind limit. Elsewhere says that the limit is for plans
	// with another algorithm, so the numbers are not for this limit.
	Limit     string `json:"limit,omitempty"`
	Elsewhere bool   `json:"elsewhere,omitempty"`

	// Network is the network that has the override, if the key itself has none. Requests is how many requests of this
	// instance it has decided; it is only in lists.
	Network  string `json:"network,omitempty"`
	Requests uint64 `json:"requests,omitempty"`

	Note string `json:"note,omitempty"`

	// Since is when it was set, and SetBy who has done that. They are absent if that is not known.
	Since time.Time `json:"since,omitzero"`
	SetBy string    `json:"set_by,omitempty"`

	// Until is absent if the override holds until it is cleared.
	Until time.Time `json:"until,omitzero"`
}

// Lately has the recent counts of a key, as a [KeyCount] has them.
type Lately struct {
	Since    time.Time `json:"since"`
	Plan     string    `json:"plan,omitempty"` // of the last request that had one
	Requests uint64    `json:"requests"`
	Refused  uint64    `json:"refused"`
	DryRun   bool      `json:"dry_run,omitempty"`
}

// Reset is the answer to a change of a key of which there is something to say.
type Reset struct {
	Warning string `json:"warning,omitempty"`

	// Unchanged says that there was nothing to change: no ban, no override, or nothing used.
	Unchanged bool `json:"unchanged,omitempty"`

	// Network is the network whose override was changed, if that was not the override of a key.
	Network string `json:"network,omitempty"`
}

// List has the networks and keys of a zone that have an override, and then those that the zone has banned.
type List struct {
	Zone string `json:"zone"`

	Keys []Listed `json:"keys"`

	// More says that there are more.
	More bool `json:"more,omitempty"`
}

// Listed is a key of a list. By is [ByOverride] or [ByRefusals].
type Listed struct {
	KeyText
	By string `json:"by"`
	Override

	// DryRun says that the zone may refuse nothing because of it: of this key, or of some keys of a network.
	DryRun bool `json:"dry_run,omitempty"`

	// Unknown says that the store only has a hash of the key, which is shown instead.
	Unknown bool `json:"unknown,omitempty"`
}
