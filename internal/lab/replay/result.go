// Package replay says what limits would have done to the requests of a log. It has the results and
// how they are shown; package engine makes them.
package replay

import (
	"io"
	"time"
)

// Options say what to replay.
type Options struct {
	Logs  []string  // names of files; "-" for Input
	Input io.Reader // the standard input

	Format    string   // of the logs; "" or "auto" to find out
	LogFormat []string // texts of nginx's log_format

	Tries []Try // other limits

	// Suggest looks for a limit for each zone, and Curve also tries limits from the smallest to the largest
	// peak of a client. Both read the logs twice.
	Suggest, Curve bool
}

// Try is a limit to try instead of that of a zone.
type Try struct {
	Zone string
	Rate string // "60/1m", or "10" for a limit without a window
}

// Result is what a config would have done to the requests of some logs.
type Result struct {
	// Config is the name of the config, if it has one.
	Config string `json:"config,omitempty"`

	// Unknown says what the logs do not tell, and what was assumed instead.
	Unknown []string `json:"unknown"`

	Zones []*Zone `json:"zones"` // by name

	Logs          []Log     `json:"logs"`
	Lines         int64     `json:"lines"`
	NoRequests    int64     `json:"no_requests"` // lines that are about something else
	NotUnderstood int64     `json:"not_understood"`
	FirstBad      []string  `json:"first_not_understood,omitempty"` // at most three of those, with the reason
	Requests      int64     `json:"requests"`                       // that were replayed
	Clients       int       `json:"clients"`                        // different addresses, at most the bound of the store
	From          time.Time `json:"from"`                           // of the first request
	To            time.Time `json:"to"`                             // of the last one

	Took time.Duration `json:"-"`
}

// Log is a log that was read.
type Log struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Lines  int64  `json:"lines"`
}

// Zone is what a zone would have done.
type Zone struct {
	Name   string  `json:"name"`
	Limit  string  `json:"limit"` // "sliding_window_log 100/1m"
	Key    string  `json:"key"`
	Events int64   `json:"events"`           // 0 if it depends on the request
	Window float64 `json:"window"`           // in seconds; 0 for concurrency and if it depends on the request
	Length string  `json:"length,omitempty"` // of the window, as the config writes it; empty if there is none
	DryRun bool    `json:"dry_run,omitempty"`

	Requests     int64      `json:"requests"`           // that were judged
	Unjudged     string     `json:"unjudged,omitempty"` // why others were not
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
	Series Series `json:"series"`

	// Peaks are the most that each key has used of any window, the largest first, see [Ranks]. They are counted
	// as if nothing had been refused. PeakKeys are the names of the first of them.
	Peaks    [][2]int64 `json:"peaks"`
	PeakKeys []string   `json:"names"`
}

// Ranks returns where the peaks of keys change, which are sorted: the rank of the first key with a peak, and the peak.
func Ranks(peaks []int64) [][2]int64 {
	all := [][2]int64{}
	for i, peak := range peaks {
		if i == 0 || peaks[i-1] != peak {
			all = append(all, [2]int64{int64(i) + 1, peak})
		}
	}
	return all
}

// Peak is the most that a key has used of any window of the limit.
type Peak struct {
	Key  string `json:"key"`
	Used int64  `json:"used"`
}

// Key is what happened to one key.
type Key struct {
	Key          string    `json:"key"`
	Requests     int64     `json:"requests"`
	Refused      int64     `json:"refused"`
	FirstRefused time.Time `json:"first_refused"`
	Peak         int64     `json:"peak"`
	About        string    `json:"about"` // see [About]
	Agent        string    `json:"agent"` // the last one
	Signs        []string  `json:"signs"` // that it is people, as "cookie"; none if it looks like a program
	Series       Series    `json:"series"`
}

// Series counts requests over time, in steps of the same length. Times are in milliseconds.
type Series struct {
	Start    int64   `json:"start"` // since 1970
	Step     int64   `json:"step"`
	Admitted []int64 `json:"admitted"` // in each step
	Refused  []int64 `json:"refused"`
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

// Suggestion is a limit above nearly all keys, and below a few, or why there is none.
type Suggestion struct {
	Limit   string   `json:"limit,omitempty"`   // empty if there is none
	Failure string   `json:"failure,omitempty"` // why there is none
	Events  int64    `json:"events,omitempty"`
	Reasons []string `json:"reasons"`
}
