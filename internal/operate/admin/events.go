package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

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
		server.RegisterOnShutdown(end)
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
