package adminapi

import (
	"time"
)

// Decision is one decision of one zone.
type Decision struct {
	Time time.Time `json:"time"`
	Zone string    `json:"zone"`
	KeyText
	Outcome string `json:"outcome"`
	Cost    int64  `json:"cost"`

	// Reason is why the zone refused without asking the store.
	Reason string `json:"reason,omitempty"`

	// Decision is absent if the zone has not decided.
	Decision *QuotaStatus `json:"decision,omitempty"`

	ClientIP string `json:"client_ip"`
	Method   string `json:"method"`
	Host     string `json:"host"`
	Path     string `json:"path"`

	// Skipped is how many decisions went unseen before this one.
	Skipped uint64 `json:"skipped,omitempty"`
}
