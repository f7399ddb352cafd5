// Package report reports refusals to operators: in the log, and as events that other modules of
// Caddy subscribe to. However many requests are refused, it reports a key once in a window.
package report

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/events"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Config configures a Reporter.
type Config struct {
	Zones  []*zone.Zone
	Log    string // LogFirst, LogOff or LogAll
	LogKey bool   // whether log lines and events contain keys
	Events events.Events
	Logger *zap.Logger
}

// Reporter reports the refusals of one handler. Its methods may be called from many goroutines at
// once.
type Reporter struct {
	Config
	dedup   *dedup
	banEnds timer
}

// New returns a Reporter.
func New(c Config) *Reporter {
	p := &Reporter{Config: c}
	p.dedup = newDedup(c.Zones, p.logSuppressed)
	if p.Log != LogOff {
		p.logEndedBans() // there may be bans that began under an earlier config
	}
	return p
}

// Close logs what was not reported yet.
func (p *Reporter) Close() {
	p.dedup.close()
	p.banEnds.close()
}

// Report reports the refusals of a verdict, including those of dry runs.
func (p *Reporter) Report(r *http.Request, v *limiter.Verdict) {
	for i := range v.Rejections {
		p.refused(r, &v.Rejections[i])
	}
	if len(v.Entries) == 0 || v.Err != nil || v.Rejected() != nil || !v.Outcome.Passes() {
		return // nothing was decided
	}
	if v.Near {
		p.near(r, v)
	}
	for i := v.Enforced; i < len(v.Entries); i++ {
		if v.Entries[i].Outcome == outcome.DryRun {
			f := v.Refusal(i)
			p.refused(r, &f)
		}
	}
	if v.Refused {
		f := v.Refusal(v.Binding)
		p.refused(r, &f)
		p.bans(r, v)
	}
}

// refused logs a refusal and emits its event, unless its key was already reported in the same
// window. A dry run emits no event, because nothing has to be done about it.
func (p *Reporter) refused(r *http.Request, f *limiter.Refusal) {
	event := eventExceeded
	if f.Policy == nil {
		event = eventRejected
	}
	emits := !f.DryRun && p.Events.Wanted(event)
	first := (p.Log == LogFirst || emits) && p.dedup.first(f, categoryOf(f))
	if p.Log == LogAll || p.Log == LogFirst && first {
		p.log(r, f)
	}
	if emits && first {
		p.Events.Emit(event, p.eventData(r, f))
	}
}

// category is what a refusal is about. Refusals of one category do not suppress those of another.
type category uint8

const (
	dryRunCategory   category = 1 << iota // the request would be refused if the zone were not a dry run
	rejectedCategory                      // the reason is the request itself, not a limit
	banCategory                           // a ban begins
	nearCategory                          // the request passes, and has brought its key near the limit
	categories       category = 1 << iota
)

func categoryOf(f *limiter.Refusal) (c category) {
	if f.DryRun {
		c |= dryRunCategory
	}
	if f.Policy == nil {
		c |= rejectedCategory
	}
	return c
}

// window returns how long a refusal of a key suppresses the next ones.
func window(f *limiter.Refusal) time.Duration {
	if f.Policy == nil {
		return throttle.Interval
	}
	return min(max(f.Policy.Numbers.Window.Length(), time.Second), time.Hour)
}

// knowsWait reports whether it is known how long the refusal holds. For slots it is not known.
func knowsWait(f *limiter.Refusal) bool {
	return f.Policy != nil && !f.Waits().Slot
}
