package zone

import (
	"fmt"
	"time"

	"go.uber.org/zap"
)

// What comes after a limit has expired.
const (
	ThenIgnore = "ignore"  // requests do not meet the zone
	ThenDryRun = "dry_run" // the zone counts, and refuses nothing
	ThenKeep   = "keep"    // the limit stays, with warnings
)

// Expiry says when a limit ends, by the clock of the instance, and what comes then.
type Expiry struct {
	At   time.Time
	Then string
}

// ExpiryNotice is how long before a limit ends people are warned of it.
const ExpiryNotice = 7 * 24 * time.Hour

// expiryDay is how long a time to the end is told in days.
const expiryDay = 24 * time.Hour

// State returns the expiry in words, as of a time.
func (e *Expiry) State(now time.Time) string {
	const layout = "2006-01-02 15:04 UTC"
	then := map[string]string{
		ThenIgnore: "requests do not meet it", ThenDryRun: "it is a dry run", ThenKeep: "its limit stays, until somebody decides",
	}[e.Then]
	switch left := e.At.Sub(now); {
	case left <= 0:
		return fmt.Sprintf("it has expired on %s: %s", e.At.UTC().Format(layout), then)
	case left < 2*expiryDay:
		return fmt.Sprintf("it expires on %s, in %d hours; then %s", e.At.UTC().Format(layout), int(left/time.Hour), then)
	default:
		return fmt.Sprintf("it expires on %s, in %d days; then %s", e.At.UTC().Format(layout), int(left/expiryDay), then)
	}
}

// Due reports whether people should hear of the expiry: it is over, or comes soon.
func (e *Expiry) Due(now time.Time) (soon, over bool) {
	left := e.At.Sub(now)
	return left > 0 && left <= ExpiryNotice, left <= 0
}

// SetTime tells a zone that expires what time it is. It reports whether that has ended its limit, or begun it again
// because the clock was set back. It may be called while requests are decided.
func (z *Zone) SetTime(now time.Time) (changed bool) {
	if z.Expires == nil {
		return false
	}
	_, over := z.Expires.Due(now)
	return z.expired.Swap(over) != over
}

// Ignored reports whether requests do not meet the zone because it has expired.
func (z *Zone) Ignored() bool {
	return z.Expires != nil && z.Expires.Then == ThenIgnore && z.expired.Load()
}

// triedOut reports whether the zone is a dry run because it has expired.
func (z *Zone) triedOut() bool {
	return z.Expires != nil && z.Expires.Then == ThenDryRun && z.expired.Load()
}

// Enforces reports whether the limit is enforced for any key.
func (z *Zone) Enforces() bool {
	if z.Ignored() || z.triedOut() {
		return false
	}
	if z.Enforce != nil {
		return *z.Enforce > 0
	}
	return !z.DryRun
}

// LifeFields are the fields of log lines about the expiry.
func (z *Zone) LifeFields() []zap.Field {
	fields := []zap.Field{zap.String("zone", z.Name)}
	if z.Note != "" {
		fields = append(fields, zap.String("note", z.Note))
	}
	return fields
}
