package report

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// The values of the option log.
const (
	LogOff   = "off"
	LogFirst = "first" // once for a key in a window
	LogAll   = "all"
)

// message is the message of a log line, in the words of github.com/mholt/caddy-ratelimit.
func (c category) message() string {
	switch {
	case c&banCategory != 0:
		return logging.Banned
	case c&rejectedCategory != 0:
		return "request rejected"
	}
	return "rate limit exceeded"
}

// log writes the line about a refusal.
func (p *Reporter) log(r *http.Request, f *limiter.Refusal) {
	c := p.Logger.Check(zap.InfoLevel, categoryOf(f).message())
	if c == nil {
		return
	}
	fields := make([]zap.Field, 1, 8)
	fields[0] = zap.String("zone", f.Zone.Name)
	if f.NeverPasses() {
		fields = append(fields, zap.Int64("cost", f.Cost), zap.Int64("limit", f.Decision.Quota))
	} else if knowsWait(f) {
		fields = append(fields, zap.Duration("wait", f.Waits().Told))
	} else if f.Policy == nil {
		fields = append(fields, zap.String("reason", f.Err.Error()), zap.Int("status", f.Status))
	}
	fields = append(fields, zap.String("remote_ip", clientip.Remote(r)), zap.String("client_ip", clientip.Client(r)))
	if f.DryRun {
		fields = append(fields, zap.Bool(outcome.Names[outcome.DryRun], true))
	}
	if f.Policy.QueueFull(&f.Decision, f.Cost) {
		fields = append(fields, zap.Bool("queue_full", true))
	}
	if f.Decision.Banned {
		fields = append(fields, zap.Bool("banned", true))
	}
	if p.LogKey {
		fields = append(fields, zap.String("key", logging.Key(f.Key)))
	}
	c.Write(fields...)
}

// logSuppressed logs how many refusals were not logged, if only the first ones are.
func (p *Reporter) logSuppressed(z *zone.Zone, c category, s suppressed) {
	// With LogAll only bans are in need of a summary: those of keys for which there was no room.
	if c&nearCategory != 0 || p.Log == LogOff || p.Log == LogAll && c&banCategory == 0 || s.requests == 0 {
		return
	}
	fields := []zap.Field{zap.String("zone", z.Name), zap.Uint64("requests", s.requests), zap.Uint64("keys", s.keys)}
	if c&dryRunCategory != 0 {
		fields = append(fields, zap.Bool(outcome.Names[outcome.DryRun], true))
	}
	p.Logger.Info(c.message()+" again", fields...)
}
