package late

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/request/body"
)

// Routes says whether error routes may respond to a request whose handlers fail.
type Routes interface{ ErrorRoutes(r *http.Request) bool }

// Serve calls the next handlers for a request that may pass, and does what remains to be done when
// it is over, even after a panic. The completion is nil if nothing remains.
func (c *Completion) Serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, routes Routes) (err error) {
	if c == nil {
		return next.ServeHTTP(w, r)
	}
	var watcher *chargeWatcher
	returned := false
	defer func() {
		c.Release()
		switch {
		case watcher != nil && watcher.ofError != nil: // that response or the end of the request comes next
			watcher.ofError.claim = context.AfterFunc(r.Context(), c.session.End)
		case returned: // so its writer has seen the response begin, and a handler may still have it
			c.End()
		default:
			c.session.End()
		}
	}()
	if c.chargesLate() || len(c.strips) > 0 {
		watcher = c.watch(w, r, routes)
		w = &watcher.Response
		defer func() { watcher.over(returned, err) }()
	}
	err = next.ServeHTTP(w, r)
	returned = true
	return err
}

// watch begins to watch the response to a request.
func (c *Completion) watch(w http.ResponseWriter, r *http.Request, routes Routes) *chargeWatcher {
	watcher := &chargeWatcher{request: r, routes: routes, length: -1}
	if c.chargesLate() {
		watcher.body = body.Of(r)
	}
	if c.reads {
		acceptReadable(r)
		server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
		extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields)
		if ok && server != nil && server.Logs != nil {
			c.settled = []settledCost{}
			extra.Add(zap.Reflect("rate_limit_costs", &c.settled)) // as it is when the line of the access log is written
		}
	}
	watcher.ResponseWriter = w
	watcher.follow(c)
	return watcher
}

// acceptReadable keeps the upstream from compressing its response in a way that cannot be read, which a
// client could ask for in order to pay no more than what was booked.
func acceptReadable(r *http.Request) {
	const field = "Accept-Encoding"
	if len(r.Header[field]) == 0 {
		return
	}
	coding := "identity"
	for _, accepted := range encode.AcceptedEncodings(r, nil) {
		if accepted == "gzip" || accepted == "*" {
			coding = "gzip"
		}
	}
	r.Header[field] = []string{coding}
}
