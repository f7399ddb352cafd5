package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

const (
	// watchPulse is how often decisions are sent, and heartbeat how many pulses later a comment keeps an idle stream alive.
	watchPulse = 100 * time.Millisecond
	heartbeat  = 150

	defaultRate = 100
	maxRate     = 1000
)

// streamDecisions sends decisions as server-sent events.
func streamDecisions(c *adminCall) (any, error) {
	rate, wants, err := c.readSubscription()
	if err != nil {
		return nil, err
	}
	v, err := subscribe(wants)
	if err != nil {
		return nil, err
	}
	defer v.Unsubscribe()
	zones := running.Zones()
	pulses, left, skipped := 0, 0, uint64(0)
	return nil, c.stream(watchPulse, func(to *events) bool {
		if pulses%int(time.Second/watchPulse) == 0 {
			left = rate // that many more may come in this second
		}
		some, missed := v.Take()
		left, skipped = max(0, left-len(some)), skipped+missed
		v.Ask(min(left, feed.Buffer))
		for _, d := range some {
			d.Skipped, skipped = skipped, 0
			split(&d, zones)
			if !to.event("decision", d) {
				return false
			}
		}
		pulses++
		return pulses%heartbeat != 1 || to.comment("decisions follow")
	})
}

// split adds the parts of its key to a decision of one of the zones.
func split(d *adminapi.Decision, zones []*running.Zone) {
	if i := slices.IndexFunc(zones, func(z *running.Zone) bool { return z.Name == d.Zone }); i >= 0 {
		d.KeyText = zones[i].Split(d.KeyText)
	}
}

// readSubscription reads which decisions to send, and how many per second.
func (c *adminCall) readSubscription() (rate int, wants func(zone, key string, o outcome.Outcome) bool, err error) {
	most, err := c.intParameter("rate", defaultRate, 1, maxRate)
	if err != nil {
		return 0, nil, err
	}
	all := [outcome.Count]bool{}
	for name := range strings.SplitSeq(c.query.Get("outcome"), ",") {
		named, ok := outcome.Named(name)
		if !ok && name != "" {
			names := append(outcome.Names[:], outcome.NameRefused, outcome.NameErrors)
			return 0, nil, adminError(badRequest, "unknown outcome %q, must be one of %s%s", name, strings.Join(names, ", "), suggest.Hint(name, names))
		}
		for o, is := range named {
			all[o] = all[o] || is
		}
	}
	any := all == [outcome.Count]bool{}
	named, err := c.readKeyQuery()
	if err != nil {
		return 0, nil, err
	}
	key, ofKey := "", !named.isEmpty()
	if ofKey && c.zone == nil {
		return 0, nil, adminError(badRequest, "the zone of the key is missing: add zone=...")
	}
	if ofKey {
		if key, err = named.keyIn(c.zone); err != nil {
			return 0, nil, err
		}
	}
	return int(most), func(z, k string, o outcome.Outcome) bool {
		return (any || all[o]) && (c.zone == nil || z == c.zone.Name) && (!ofKey || k == key)
	}, nil
}

// writeTimeout bounds the time to send an event.
const writeTimeout = 5 * time.Second

// events sends server-sent events as an answer. Its methods report whether the client still reads.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// stream answers with events: each sends some with each pulse, the first ones at once. It ends when each returns false, the client leaves, or the admin endpoint shuts down, as it does on each reload.
func (c *adminCall) stream(pulse time.Duration, each func(*events) bool) error {
	to := &events{w: c.ResponseWriter, control: http.NewResponseController(c.ResponseWriter)}
	// The endpoint's read deadline would end this request.
	if err := to.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lifting the deadline of the stream: %w", err)
	}
	c.Header().Set("Content-Type", "text/event-stream")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusOK)
	ctx, end := context.WithCancel(c.request.Context())
	defer end()
	if server, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok { // which would wait for the stream
		defer context.AfterFunc(shutdownOf(server), end)()
	}
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for ok := each(to); ok; {
		select {
		case <-ticker.C:
			ok = each(to)
		case <-ctx.Done():
			return nil
		}
	}
	return nil // the answer has begun, so an error cannot be sent
}

// shutdowns has a context for each admin endpoint that has had a stream.
var shutdowns sync.Map

// shutdownOf returns a context that is done when a server shuts down. A server keeps for good what is registered with it,
// so that is one function for all streams.
func shutdownOf(server *http.Server) context.Context {
	ctx, end := context.WithCancel(context.Background())
	if known, loaded := shutdowns.LoadOrStore(server, ctx); loaded {
		end()
		return known.(context.Context)
	}
	server.RegisterOnShutdown(func() {
		end()
		shutdowns.Delete(server)
	})
	return ctx
}

// event sends an event with a value as JSON.
func (e *events) event(name string, value any) bool {
	text, err := json.Marshal(value)
	return err == nil && e.send(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text))
}

// comment sends what clients ignore, which shows whether the client still reads.
func (e *events) comment(text string) bool { return e.send([]byte(": " + text + "\n\n")) }

func (e *events) send(text []byte) bool {
	// A client that does not read must not keep its place forever.
	if e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
		return false
	}
	_, err := e.w.Write(text)
	return err == nil && e.control.Flush() == nil
}
