package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

const (
	// heartbeat keeps a stream alive on which nothing happens.
	heartbeat = 15 * time.Second

	// streamPatience is how long an event may take to be sent.
	streamPatience = 5 * time.Second

	usualRate = 100
	mostRate  = 1000
)

// streamDecisions sends decisions as server-sent events until the client leaves, another
// viewer takes its place, or the admin endpoint is replaced, which each reload does.
func streamDecisions(c *adminCall) error {
	rate, wants, err := c.wishes()
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

	control := http.NewResponseController(c.ResponseWriter)
	// The endpoint's deadline is for requests that are read, and would end this one.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lifting the deadline of the stream: %w", err)
	}
	c.Header().Set("Content-Type", "text/event-stream")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusOK)
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	text := []byte(": decisions follow\n\n")
	end := endOf(c.request)
	for {
		// One that does not read must not keep its place for ever.
		if err := control.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil {
			return nil // the answer has begun, so there is nobody to tell
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
			decision, err := json.Marshal(s)
			if err != nil {
				return nil // the answer has begun, so there is nobody to tell
			}
			text = fmt.Appendf(nil, "event: decision\ndata: %s\n\n", decision)
		case <-pulse.C:
			text = []byte(":\n\n")
		case <-c.request.Context().Done():
			return nil
		case <-end:
			return nil
		case <-v.Evicted:
			return nil
		}
	}
}

// wishes are what the query says of which decisions to send, and how many.
func (c *adminCall) wishes() (rate int64, wants func(zone, key string, o outcome.Outcome) bool, err error) {
	if err := c.known("zone", "key", "key_base64", "part", "outcome", "rate"); err != nil {
		return 0, nil, err
	}
	if rate, err = c.number("rate", usualRate, 1, mostRate); err != nil {
		return 0, nil, err
	}
	all := [outcome.Count]bool{}
	for name := range strings.SplitSeq(c.query.Get("outcome"), ",") {
		i := slices.Index(outcome.Names[:], name)
		if i < 0 && name != "" {
			return 0, nil, adminError(badRequest, "unknown outcome %q, must be one of %s", name, strings.Join(outcome.Names[:], ", "))
		}
		if i >= 0 {
			all[i] = true
		}
	}
	any := all == [outcome.Count]bool{}
	zone, ofZone := c.query.Get("zone"), c.query.Has("zone")
	asked, err := c.askedKey()
	if err != nil {
		return 0, nil, err
	}
	key, ofKey := "", !asked.none()
	if ofKey && !ofZone {
		return 0, nil, adminError(badRequest, "say of which zone the key is: zone=...")
	}
	if ofZone {
		if c.zone, err = findZone(zone); err != nil {
			return 0, nil, err
		}
	}
	if ofKey {
		if key, err = asked.of(c.zone); err != nil {
			return 0, nil, err
		}
	}
	return rate, func(z, k string, o outcome.Outcome) bool {
		return (any || all[o]) && (!ofZone || z == zone) && (!ofKey || k == key)
	}, nil
}

// ends are closed when a server shuts down, so that streams do not hold it up.
var ends = struct {
	sync.Mutex
	of map[*http.Server]chan struct{}
}{of: make(map[*http.Server]chan struct{})}

// endOf is closed when the server of a request shuts down.
func endOf(r *http.Request) <-chan struct{} {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	ends.Lock()
	defer ends.Unlock()
	end, ok := ends.of[server]
	if !ok {
		end = make(chan struct{})
		ends.of[server] = end
		server.RegisterOnShutdown(func() {
			ends.Lock()
			defer ends.Unlock()
			delete(ends.of, server)
			close(end)
		})
	}
	return end
}
