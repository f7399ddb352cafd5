// Package report reports refusals to operators: in the log, and as events that other modules of
// Caddy subscribe to. However many requests are refused, it reports one in a zone and second.
package report

import (
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/events"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// The values of the option log.
const (
	LogOff   = "off"
	LogFirst = "first" // one line for a zone and second
	LogAll   = "all"
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
	counts [][2 * kinds]count // by the zones' Index

	mu     sync.Mutex // held while a second ends
	second *time.Timer
	closed bool
}

// New returns a Reporter.
func New(c Config) *Reporter {
	return &Reporter{Config: c, counts: make([][2 * kinds]count, len(c.Zones))}
}

// Close logs what was not told yet. No timer keeps the Reporter for a request that outlives its config.
func (p *Reporter) Close() {
	p.mu.Lock() // so that it waits for a second that ends, which may hold what is not told yet
	defer p.mu.Unlock()
	p.closed = true
	if p.second != nil {
		p.second.Stop()
	}
	p.tellRest()
	p.tellRest() // of a second without requests
}

// kind is what a report is about; that of a dry run is larger by kinds. Reports of one kind do not suppress those of another.
type kind uint8

const (
	exceeded kind = iota // a limit refuses
	rejected             // the reason is the request itself, not a limit
	banned               // a ban begins
	kinds
)

// ofKind says how each kind is told. Dry runs have no events: nothing has to be done about them.
var ofKind = [kinds]struct {
	message string // of lines, in the words of github.com/mholt/caddy-ratelimit
	event   string
	most    uint64 // how many are told in a zone and second
}{
	exceeded: {"rate limit exceeded", "rate_limit_exceeded", 1},
	rejected: {"request rejected", "rate_limit_rejected", 1},
	banned:   {"client banned", "rate_limit_banned", 1000}, // all, as the store tells each ban once, but for floods
}

// Report reports what a request has brought about in its zones, including refusals of dry runs.
func (p *Reporter) Report(r *http.Request, v *limiter.Verdict) {
	for i := range v.Rejections {
		p.refused(r, &v.Rejections[i])
	}
	for i := range v.Entries {
		e := &v.Entries[i]
		if e == v.Binding && v.Refused() || e.Outcome == outcome.DryRun {
			p.refused(r, e)
		}
		if !e.DryRun && e.Decision.BanBegins {
			p.tell(r, e, banned)
		}
	}
}

func (p *Reporter) refused(r *http.Request, f *limiter.Entry) {
	k := exceeded
	if f.Policy == nil {
		k = rejected
	}
	if f.DryRun {
		k += kinds
	}
	p.tell(r, f, k)
}

// tell reports a refusal in the log and by an event, if it is the turn of one.
func (p *Reporter) tell(r *http.Request, f *limiter.Entry, k kind) {
	lines := p.Log != LogOff && p.Logger.Core().Enabled(zap.InfoLevel)
	told := ofKind[k%kinds]
	events := k < kinds && p.Events.Wanted(told.event)
	if !lines && !events {
		return
	}
	more, turn := p.turn(f.Zone, k)
	all := lines && p.Log == LogAll
	if !turn && !all {
		return
	}
	fields := p.fields(r, f, k)
	if k == banned { // a decision has the wait for the limit if that is longer than the ban
		ban := f.Zone.KeyRules.Ban
		until := time.UnixMicro(f.Decision.At).Add(min(f.Decision.RetryAfter, max(ban.For, ban.UpTo)))
		fields = append(fields, zap.Time("until", until.UTC()), zap.Int64("refusals", ban.After))
	}
	if more > 0 && !all {
		fields = append(fields, zap.Uint64("more", more))
	}
	if lines {
		p.Logger.Info(told.message, fields...)
	}
	if events && turn {
		data := zapcore.NewMapObjectEncoder()
		for _, field := range fields {
			field.AddTo(data)
		}
		p.Events.Emit(told.event, data.Fields)
	}
}

// fields are what lines and events say of a refusal.
func (p *Reporter) fields(r *http.Request, f *limiter.Entry, k kind) []zap.Field {
	fields := []zap.Field{zap.String("zone", f.Zone.Name)}
	if f.Policy == nil {
		fields = append(fields, zap.String("reason", f.Reason().Error()), zap.Reflect("status", f.Status)) // an int in events
	} else {
		fields = append(fields, zap.Int64("limit", f.Decision.Quota))
		switch waits := f.Waits(); {
		case f.NeverPasses():
			fields = append(fields, zap.Int64("cost", f.Cost))
		case !waits.Slot: // for slots it is not known
			fields = append(fields, zap.Duration("wait", waits.Told))
		}
	}
	fields = append(fields, zap.String("remote_ip", clientip.Remote(r)), zap.String("client_ip", clientip.Client(r)))
	fields = append(fields, k.dryRun(), flag("banned", f.Decision.Banned && k != banned))
	if p.LogKey {
		fields = append(fields, zap.String("key", logging.Key(f.Key)))
	}
	return fields
}

// dryRun marks what a dry run would do.
func (k kind) dryRun() zap.Field {
	return flag(outcome.Names[outcome.DryRun], k >= kinds)
}

// flag is a field that is only there if it is true.
func flag(name string, set bool) zap.Field {
	if !set {
		return zap.Skip()
	}
	return zap.Bool(name, true)
}
