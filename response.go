package caddyratelimit

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// watch handles a request and sees what becomes of its response, however it ends.
func (h *hold) watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	h.leaveToOthers(w)
	seen := &witness{hold: h}
	seen.ResponseWriter = w
	status := http.StatusInternalServerError // of a panic
	defer func() { seen.final(status) }()
	err = next.ServeHTTP(seen, r)
	if status = http.StatusOK; err != nil {
		status = statusOf(err)
	}
	return err
}

// leaveToOthers takes what handlers around this one strip too off the list: they want to
// read it themselves.
func (h *hold) leaveToOthers(w http.ResponseWriter) {
	for layer := range layers(w) {
		if outer, ok := layer.(*witness); ok {
			h.strips = slices.DeleteFunc(h.strips, func(name string) bool { return slices.Contains(outer.hold.strips, name) })
		}
	}
}

// statusOf is the status that Caddy answers an error with. Its server looks no deeper.
func statusOf(err error) int {
	if e, ok := err.(caddyhttp.HandlerError); ok && e.StatusCode != 0 { //nolint:errorlint
		return e.StatusCode
	}
	return http.StatusInternalServerError
}

// witness is a response of which the status and the header are looked at as they leave.
type witness struct {
	caddyhttp.ResponseWriterWrapper
	hold *hold
	left bool // the header has left
}

// leaves is called before the header leaves.
func (w *witness) leaves(status int) {
	if w.left {
		return
	}
	w.left = true
	w.hold.judge(status, w.Header())
	w.hold.collect(w.Header())
}

// final is called when the response is over. If nothing has left yet, the status tells
// what will. Trailers are still in the header.
func (w *witness) final(status int) {
	w.leaves(status)
	w.hold.collect(w.Header())
}

// WriteHeader implements [http.ResponseWriter].
func (w *witness) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.leaves(status)
		w.ResponseWriterWrapper.WriteHeader(status)
		return
	}
	// The response is still to come, and what it costs with it.
	hidden := w.hold.strip(w.Header())
	w.ResponseWriterWrapper.WriteHeader(status)
	maps.Copy(w.Header(), hidden)
}

// Write implements [http.ResponseWriter].
func (w *witness) Write(b []byte) (int, error) {
	w.leaves(http.StatusOK)
	return w.ResponseWriterWrapper.Write(b)
}

// ReadFrom implements [io.ReaderFrom].
func (w *witness) ReadFrom(r io.Reader) (int64, error) {
	w.leaves(http.StatusOK)
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError is what [http.ResponseController] looks for.
func (w *witness) FlushError() error {
	w.leaves(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements [http.Flusher].
func (w *witness) Flush() { _ = w.FlushError() }

// Hijack implements [http.Hijacker]. What is said on a hijacked connection is not HTTP,
// unless a header has left before.
func (w *witness) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.leaves(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Interface guards
var (
	_ http.Flusher  = (*witness)(nil)
	_ http.Hijacker = (*witness)(nil)
	_ io.ReaderFrom = (*witness)(nil)
)
