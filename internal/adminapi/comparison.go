package adminapi

// Comparison says what differs between two configs.
type Comparison struct {
	Zones []ZoneDiff `json:"zones"`

	// Unjudged names what else differs where requests come to a limit, such as routes, matchers, maps and stores. It may
	// decide which requests a zone counts, by which key and plan, and whether counts begin again from zero.
	Unjudged []string `json:"unjudged,omitempty"`

	// Log is what the difference would have meant for the requests of a log. It is absent without one.
	Log *LogDiff `json:"log,omitempty"`
}

// LogDiff says which clients of a log the new config would refuse more often than the old one, or less often.
type LogDiff struct {
	Requests int64 `json:"requests"`
	Was      int64 `json:"refused_before"` // requests that the old config refuses
	Is       int64 `json:"refused_now"`
	Clients  int64 `json:"clients"`

	// Unknown says what the logs do not tell: lines that are not understood, zones that could not be judged, and what
	// was assumed.
	Unknown []string `json:"unknown,omitempty"`

	// More and Less are how many clients are refused more often, or less often. MoreOf and LessOf have those with the
	// greatest difference.
	More   int64        `json:"clients_refused_more"`
	Less   int64        `json:"clients_refused_less"`
	MoreOf []ClientDiff `json:"more,omitempty"`
	LessOf []ClientDiff `json:"less,omitempty"`
}

// ClientDiff is how many requests of a client each config refuses.
type ClientDiff struct {
	Client   string `json:"client"` // its key in the zones, or its address in the log
	Requests int64  `json:"requests"`
	Was      int64  `json:"refused_before"`
	Is       int64  `json:"refused_now"`
}

// What has happened to a zone.
const (
	ZoneNew     = "new"
	ZoneGone    = "gone"
	ZoneChanged = "changed"
)

// ZoneDiff is what differs between two configs in a zone.
type ZoneDiff struct {
	Zone string `json:"zone"`
	Kind string `json:"kind"` // new, gone or changed

	// Changes says which options differ, and how, or what the limit and the key of a zone are that is new or gone.
	Changes []string `json:"changes,omitempty"`

	// Warnings are those that the new config gives, and the old one did not.
	Warnings []string `json:"warnings,omitempty"`
}
