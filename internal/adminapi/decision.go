package adminapi

import (
	"time"
)

// Decision is a decision of a zone, as it is streamed.
type Decision struct {
	Time time.Time `json:"time"`
	Zone string    `json:"zone"`
	KeyText

	// Plan is the plan of the request. It is absent if there is none, or the zone did not look for it.
	Plan string `json:"plan,omitempty"`

	Outcome string `json:"outcome"`
	Cost    int64  `json:"cost"`

	// Reason says why the zone rejected the request without asking the store.
	Reason string `json:"reason,omitempty"`

	// Decision is absent if the limit was not asked.
	Decision *QuotaStatus `json:"decision,omitempty"`

	ClientIP string `json:"client_ip"`
	Method   string `json:"method"`
	Host     string `json:"host"`
	Path     string `json:"path"`

	// UserAgent is what the client says that it is.
	UserAgent string `json:"user_agent,omitempty"`

	// Skipped is the number of decisions before this one that were not sent.
	Skipped uint64 `json:"skipped,omitempty"`
}
