package caddyratelimit

import (
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// What log can be.
const (
	logOff   = "off"
	logFirst = "first"
	logAll   = "all"
)

// topic is what a refusal is about; one is not silent for the sake of another.
type topic uint8

const (
	dryTopic      topic = 1 << iota // would be refused, if it were no dry run
	rejectedTopic                   // no limit, but the request itself is the reason
	banTopic                        // a ban begins with it; this is no line, but an event
	topics        topic = 1 << iota
)

func (f *refusal) topic() (t topic) {
	if f.dry {
		t |= dryTopic
	}
	if f.grant == nil {
		t |= rejectedTopic
	}
	if f.begins {
		t |= banTopic
	}
	return t
}

// message is what the log says, with the words of github.com/mholt/caddy-ratelimit.
func (t topic) message() string {
	if t&rejectedTopic != 0 {
		return "request rejected"
	}
	return "rate limit exceeded"
}

// note tells people of a refusal, in the log and as an event, unless they have heard of
// this key lately. Nobody acts on a dry run, so it is no event.
func (h *Handler) note(r *http.Request, f *refusal) {
	event := eventExceeded
	if f.grant == nil {
		event = eventRejected
	}
	emits := !f.dry && h.events.wanted(event)
	first := (h.Log == logFirst || emits) && h.journal.first(f)
	if h.Log == logAll || h.Log == logFirst && first {
		h.log(r, f)
	}
	if emits && first {
		h.events.emit(event, h.refused(r, f))
	}
}

// log writes the line about a refusal.
func (h *Handler) log(r *http.Request, f *refusal) {
	c := h.logger.Check(zap.InfoLevel, f.topic().message())
	if c == nil {
		return
	}
	fields := make([]zap.Field, 1, 7)
	fields[0] = zap.String("zone", f.zone.Name)
	if f.tellsWait() {
		fields = append(fields, zap.Duration("wait", f.grant.Wait(&f.decision)))
	} else if f.grant == nil {
		fields = append(fields, zap.String("reason", f.err.Error()), zap.Int("status", f.status))
	}
	fields = append(fields, zap.String("remote_ip", clientip.Remote(r)), zap.String("client_ip", clientip.Client(r)))
	if f.dry {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	if f.decision.Banned {
		fields = append(fields, zap.Bool("banned", true))
	}
	if h.logsKey() {
		fields = append(fields, zap.String("key", clipped(f.key)))
	}
	c.Write(fields...)
}

// tellsWait reports whether it is known how long the refusal holds. When a slot comes back
// nobody knows.
func (f *refusal) tellsWait() bool {
	return f.grant != nil && (!f.grant.Lends || f.decision.Banned)
}

// logSilent writes how many refusals were not logged, if only first ones are.
func (h *Handler) logSilent(z *zone.Zone, about topic, s silence) {
	if h.Log != logFirst || s.requests == 0 || about&banTopic != 0 {
		return
	}
	fields := []zap.Field{zap.String("zone", z.Name), zap.Uint64("requests", s.requests), zap.Uint64("keys", s.keys)}
	if about&dryTopic != 0 {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	h.logger.Info(about.message()+" again", fields...)
}

// maxLoggedKey is how much of a key a line shows. Clients may choose keys as long as a
// request's header may be, and a new one for each line.
const maxLoggedKey = 1024

func clipped(key string) string {
	if len(key) <= maxLoggedKey {
		return key
	}
	return strings.ToValidUTF8(key[:maxLoggedKey], "") + "..."
}

func (h *Handler) logsKey() bool { return h.LogKey != nil && *h.LogKey }

// quietFor is how long refusals of one key are not worth another line.
func (f *refusal) quietFor() time.Duration {
	if f.grant == nil {
		return throttle.Interval
	}
	return min(max(f.grant.Numbers.Window.Length(), time.Second), time.Hour)
}
