// Package replay says what limits would have done to the requests of a log. It has the results and
// how they are shown; package engine makes them.
package replay

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// Result is what a config would have done to the requests of some logs.
type Result struct {
	// Config is the name of the config, if it has one.
	Config string `json:"config,omitempty"`

	// Unknown is what the logs do not tell, and what was assumed instead.
	Unknown []Unknown `json:"unknown"`

	Zones []*Zone `json:"zones"` // by name

	Logs          []Log      `json:"logs"`
	Lines         int64      `json:"lines"`
	NoRequests    int64      `json:"no_requests"` // lines that are about something else
	NotUnderstood int64      `json:"not_understood"`
	FirstBad      []logs.Bad `json:"first_not_understood,omitempty"` // at most three
	Requests      int64      `json:"requests"`                       // that were replayed
	Clients       int        `json:"clients"`                        // different addresses, at most the bound of the store
	From          time.Time  `json:"from"`                           // of the first request
	To            time.Time  `json:"to"`                             // of the last one
	Hosts         []Host     `json:"hosts,omitempty"`

	Took time.Duration `json:"-"`
}

// Host is one to which clients have sent requests.
type Host struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"`
}

// Log is a log that was read.
type Log struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Lines  int64  `json:"lines"`
}

// Unknown is something that the logs do not tell.
type Unknown struct {
	Zone    string `json:"zone,omitempty"`   // empty if it is about all zones
	Option  string `json:"option,omitempty"` // of the zone
	What    string `json:"what"`             // is not in the log
	Assumed string `json:"assumed"`
	Count   int64  `json:"requests,omitempty"` // that it is about; 0 for all
}

// Sentence says what is not known, and what was assumed.
func (u *Unknown) Sentence() string {
	text := u.What
	switch {
	case u.Zone != "" && u.Option != "":
		text = "zone " + say.Printable(u.Zone) + ", " + u.Option + ": " + text
	case u.Zone != "":
		text = "zone " + say.Printable(u.Zone) + ": " + text
	}
	if u.Count > 0 {
		text += " (" + Count(u.Count) + " requests)"
	}
	return text + "; " + u.Assumed
}

// Zone is what a zone would have done.
type Zone struct {
	Name   string  `json:"name"`
	Limit  string  `json:"limit"` // "sliding_window_log 100/1m"
	Key    string  `json:"key"`
	Events int64   `json:"events"`           // 0 if it depends on the request
	Window float64 `json:"window"`           // in seconds; 0 for concurrency and if it depends on the request
	Length string  `json:"length,omitempty"` // of the window, as the config writes it; empty if there is none
	Burst  int64   `json:"burst,omitempty"`  // what a bucket holds; 0 for other algorithms
	DryRun bool    `json:"dry_run,omitempty"`

	Requests     int64      `json:"requests"` // that were judged
	NotJudged    int64      `json:"not_judged,omitempty"`
	WhyNotJudged string     `json:"why_not_judged,omitempty"`
	Keys         int        `json:"keys"`
	Refused      int64      `json:"refused"`
	KeysRefused  int        `json:"keys_refused"`
	FirstRefused *time.Time `json:"first_refused"` // null if there is none

	// Outcomes are the numbers of requests by the names of package outcome.
	Outcomes map[string]int64 `json:"outcomes"`

	// Busiest is the key with the highest peak that was never refused; nil if there is none.
	Busiest *Peak `json:"busiest_never_refused,omitempty"`

	Top        []*Key      `json:"top"` // the keys that were refused most often
	WhatIf     []WhatIf    `json:"what_if"`
	Suggestion *Suggestion `json:"suggestion,omitempty"`

	// Series is what happened over time, for all keys.
	Series Series `json:"-"`

	// Peaks are the most that each key has used of any window, the largest first. They are counted
	// as if nothing had been refused. PeakKeys are the names of the first of them.
	Peaks    []int64  `json:"-"`
	PeakKeys []string `json:"-"`
}

// Most returns how much a key can use in one window: of a bucket, what it holds at the beginning and what flows in.
// It is 0 if that depends on the request.
func (z *Zone) Most() int64 {
	if z.Burst > 0 && z.Events > 0 {
		return z.Events + z.Burst
	}
	return z.Events
}

// Peak is the most that a key has used of any window of the limit.
type Peak struct {
	Key  string `json:"key"`
	Used int64  `json:"used"`
}

// Key is what happened to one key.
type Key struct {
	Key          string        `json:"key"`
	Requests     int64         `json:"requests"`
	Refused      int64         `json:"refused"`
	FirstRefused time.Time     `json:"first_refused"`
	Peak         int64         `json:"peak"`
	Status       map[int]int64 `json:"status"` // in the log, of the requests that are refused
	Agent        string        `json:"agent"`  // the last one
	Signs        []string      `json:"signs"`  // that it is people, as "cookie"; none if it looks like a program
	Shared       bool          `json:"shared"` // it looks like several people behind one address
	Series       Series        `json:"-"`
}

// Series counts requests over time, in steps of the same length.
type Series struct {
	Start             time.Time
	Step              time.Duration
	Admitted, Refused []int64 // of each step; as many of the one as of the other
}

// WhatIf is what another limit would have done, with everything else as it is.
type WhatIf struct {
	Limit       string  `json:"limit"` // "200/1m"
	Events      int64   `json:"events"`
	Window      float64 `json:"window"` // in seconds; 0 for concurrency
	Refused     int64   `json:"refused"`
	KeysRefused int     `json:"keys_refused"`

	Configured bool `json:"configured,omitempty"` // it is the limit in the config
	Suggested  bool `json:"suggested,omitempty"`
	Curve      bool `json:"curve,omitempty"` // it was tried for the curve of the page alone
}

// Suggestion is a limit that separates a few keys from all others, or why there is none.
type Suggestion struct {
	Limit   string   `json:"limit,omitempty"`   // empty if there is none
	Failure string   `json:"failure,omitempty"` // why there is none
	Events  int64    `json:"events,omitempty"`
	Reasons []string `json:"reasons"`
}
