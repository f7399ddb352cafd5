package adminapi

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// Request describes a request that is explained and not sent.
type Request struct {
	Method string `json:"method,omitempty"`
	URL    string `json:"url"`

	// Header has the headers, each as "Name: value".
	Header []string `json:"header,omitempty"`

	Body []byte `json:"body,omitempty"` // in base64

	// From is the address of the connection: an IP address, with or without a port, or "@" for a Unix
	// socket.
	From string `json:"from,omitempty"`

	// Server is the name of the server that gets the request, if that is not clear from the port.
	Server string `json:"server,omitempty"`

	// Assume has values of placeholders that only a real request would have, as a Caddyfile or JSON has them.
	Assume map[string]string `json:"assume,omitempty"`
}

// Explanation says what would happen to a request.
type Explanation struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	From   string `json:"from"` // the address of the connection

	ClientIP string `json:"client_ip"` // the client's address

	Server string   `json:"server"`
	Listen []string `json:"listen"`

	Steps []Step  `json:"steps"` // in the order in which the request meets them
	Zones []Visit `json:"zones"`

	// Outcome is the outcome of the request: one of the outcomes in zones, or "not_limited" if no zone
	// counts it, or "error" if something else refuses it with Status before a zone has counted it.
	Outcome string `json:"outcome"`

	// Passes says that no limit refuses the request.
	Passes bool `json:"passes"`

	// Zone is the zone that refuses the request, Status the status that its caller gets, and GRPCStatus its code of gRPC.
	Zone       string `json:"zone,omitempty"`
	Status     int    `json:"status,omitempty"`
	GRPCStatus uint8  `json:"grpc_status,omitempty"`

	// RetryAfter is the Retry-After of the refusal in seconds, before it is rounded. Never says that the refusal does
	// not end by itself. Wait is how long the request is held before it passes, or is refused.
	RetryAfter float64 `json:"retry_after,omitempty"`
	Never      bool    `json:"never,omitempty"`
	Wait       float64 `json:"wait,omitempty"`

	// Reason says in words why the outcome is an error, or why no limit holds.
	Reason string `json:"reason,omitempty"`
}

// Outcomes of an Explanation, besides those in zones.
const (
	NotLimited = "not_limited"
	Failed     = "error"
)

// Step is a route or a handler that the request comes to.
type Step struct {
	// Route is the number of a route. It is absent for a handler.
	Route string `json:"route,omitempty"`

	// Match are the route's matchers in words; empty for all requests.
	Match string `json:"match,omitempty"`
	Taken bool   `json:"taken,omitempty"`

	// Misses are the matchers that do not match.
	Misses []string `json:"misses,omitempty"`

	// Handler is the name of a handler's module. Effect is what happened to the handler: "ran", "decides",
	// "passed" (it does not matter), "assumed" (it was not run) or "ends".
	Handler string `json:"handler,omitempty"`
	Effect  string `json:"effect,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Visit is a zone of a handler that the request meets.
type Visit struct {
	Zone    string `json:"zone"`
	Handler int    `json:"handler"` // the number of the handler among those that the request meets

	// Met says that the zone's matchers match the request, and Misses has those that do not.
	Met    bool     `json:"met"`
	Misses []string `json:"misses,omitempty"`

	// Outcome is the outcome of the request in the zone. It is absent if the zone is not met.
	Outcome string `json:"outcome,omitempty"`

	// DryRun says that the zone refuses nothing for this key.
	DryRun bool `json:"dry_run,omitempty"`

	// Reason says in words why the zone has the outcome, if its limit is not the reason. Status is that of
	// a refusal, before it is written in the caller's language.
	Reason string `json:"reason,omitempty"`
	Status int    `json:"status,omitempty"`

	// Wait is how long the request is held, in seconds.
	Wait float64 `json:"wait,omitempty"`

	// State is the state of the key under the limit of the request. It is absent if the store is not
	// asked.
	State *Key `json:"state,omitempty"`
}

// Why says in words why the zone counts the request or not, if its limit is not the reason; else it is empty. It begins
// behind the name of the zone. The status of a refusal is left out unless asked for.
func (v *Visit) Why(status bool) string {
	switch {
	case len(v.Misses) > 0:
		return "does not count it: " + NoneMatches(v.Misses)
	case v.Reason == "":
		return ""
	case !v.Met:
		return "does not see it: " + v.Reason
	}
	switch v.Outcome {
	case outcome.Names[outcome.Exempt]:
		return "does not limit it: " + v.Reason
	case outcome.Names[outcome.Rejected]:
		if status {
			return fmt.Sprintf("refuses it with status %d: %s", v.Status, v.Reason)
		}
		return "refuses it: " + v.Reason
	case outcome.Names[outcome.DryRun]:
		return fmt.Sprintf("would refuse it with status %d, but this is a dry run: %s", v.Status, v.Reason)
	}
	return "cannot say: " + v.Reason
}

// NoneMatches says which matchers do not match.
func NoneMatches(misses []string) string {
	if len(misses) == 1 {
		return misses[0] + " does not match"
	}
	return "none of these match: " + strings.Join(misses, " or ")
}
