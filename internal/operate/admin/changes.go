package admin

import (
	"net"
	"net/http"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// changed logs what the call has changed of a key.
func (c *adminCall) changed(action, key, what, note string) {
	fields := []zap.Field{zap.String("by", whoAsks(c.request)), zap.String("zone", c.zone.Name)}
	if note != "" {
		fields = append(fields, zap.String("note", note))
	}
	if c.zone.LogKey {
		fields = append(fields, zap.String("key", logging.Key(peek.KeyText(c.zone.Template, key, len(key)).Key)))
	}
	running.LogChange(action, what, fields...)
}

// whoAsks says who sends a request to the admin API, by its address. On a Unix socket it is "local".
func whoAsks(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		return host
	}
	return "local"
}

// describeChange says in words what an override does.
func describeChange(rule *store.Rule, o *store.Override) string {
	text := o.Kind.String()
	if o.Kind == store.KindLimit {
		text = peek.DescribeLimit(rule, o.Limit, true)
	}
	if o.For > 0 {
		text += " for " + duration.Format(o.For)
	}
	return text
}
