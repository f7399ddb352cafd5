package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

const (
	// heartbeat is the interval of comments that keep an idle stream alive.
	heartbeat = 15 * time.Second

	// writeTimeout bounds the time to send an event.
	writeTimeout = 5 * time.Second

	defaultRate = 100
	maxRate     = 1000
)

// streamDecisions sends decisions as server-sent events until the client leaves, another subscriber
// takes its place, or the admin endpoint shuts down, as it does on each reload.
func streamDecisions(c *adminCall) error {
	rate, wants, err := c.readSubscription()
	if err != nil {
		return err
	}
	v, err := feed.Subscribe(rate, wants)
	if errors.Is(err, feed.ErrTooManySubscribers) {
		return adminError(http.StatusServiceUnavailable, "%w: at most %d", err, feed.MaxSubscribers)
	}
	if err != nil {
		return err
	}
	defer v.Unsubscribe()

	templates := make(map[string]*key.Template)
	for _, z := range runningZones() {
		templates[z.Name] = z.Template
	}
	control := http.NewResponseController(c.ResponseWriter)
	// The endpoint's read deadline would end this request.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lifting the deadline of the stream: %w", err)
	}
	c.Header().Set("Content-Type", "text/event-stream")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusOK)
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	text := []byte(": decisions follow\n\n")
	shutdown := shutdownOf(c.request)
	for {
		// A client that does not read must not keep its place for ever.
		if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return nil // the answer has begun, so an error cannot be sent
		}
		if _, err := c.Write(text); err != nil {
			return nil // the client has left
		}
		if err := control.Flush(); err != nil {
			return nil
		}
		select {
		case s := <-v.Decisions:
			v.MarkActive()
			s.Skipped = v.Skipped.Swap(0)
			if text, err := s.Bytes(); err == nil && templates[s.Zone] != nil {
				s.KeyText = keyText(templates[s.Zone], text, max(len(text), s.Truncated))
			}
			decision, err := json.Marshal(s)
			if err != nil {
				return nil // the answer has begun, so an error cannot be sent
			}
			text = fmt.Appendf(nil, "event: decision\ndata: %s\n\n", decision)
		case <-pulse.C:
			text = []byte(":\n\n")
		case <-c.request.Context().Done():
			return nil
		case <-shutdown:
			return nil
		case <-v.Evicted:
			return nil
		}
	}
}

// readSubscription reads which decisions to send, and how many per second.
func (c *adminCall) readSubscription() (rate int64, wants func(zone, key string, o outcome.Outcome) bool, err error) {
	if err := c.checkParameters("zone", "key", "key_base64", "part", "outcome", "rate"); err != nil {
		return 0, nil, err
	}
	if rate, err = c.intParameter("rate", defaultRate, 1, maxRate); err != nil {
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
	zone, ofZone := c.query.Get("zone"), c.query.Has("zone")
	named, err := c.readKeyQuery()
	if err != nil {
		return 0, nil, err
	}
	key, ofKey := "", !named.isEmpty()
	if ofKey && !ofZone {
		return 0, nil, adminError(badRequest, "the zone of the key is missing: add zone=...")
	}
	if ofZone {
		if c.zone, err = findZone(zone); err != nil {
			return 0, nil, err
		}
	}
	if ofKey {
		if key, err = named.keyIn(c.zone); err != nil {
			return 0, nil, err
		}
	}
	return rate, func(z, k string, o outcome.Outcome) bool {
		return (any || all[o]) && (!ofZone || z == zone) && (!ofKey || k == key)
	}, nil
}

// shutdowns has a channel for each server with streams. It is closed when the server shuts down, so
// that streams do not delay the shutdown.
var shutdowns = struct {
	sync.Mutex
	byServer map[*http.Server]chan struct{}
}{byServer: make(map[*http.Server]chan struct{})}

// shutdownOf returns a channel that is closed when the server of a request shuts down.
func shutdownOf(r *http.Request) <-chan struct{} {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	shutdowns.Lock()
	defer shutdowns.Unlock()
	end, ok := shutdowns.byServer[server]
	if !ok {
		end = make(chan struct{})
		shutdowns.byServer[server] = end
		server.RegisterOnShutdown(func() {
			shutdowns.Lock()
			defer shutdowns.Unlock()
			delete(shutdowns.byServer, server)
			close(end)
		})
	}
	return end
}
