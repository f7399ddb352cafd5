package cases

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
)

// exchange is one request on its way, and what has come of it. It implements [walk.Visitor].
type exchange struct {
	trial.Trace
	world    *world
	request  *Request
	url      string // the whole one
	at       int64  // when it came, in microseconds since 1970
	response *httptest.ResponseRecorder
	err      error // why the request could not be sent, or served
}

// send sends a request. It returns when the request is over, or waits.
func (w *world) send(r *Request) *exchange {
	x := &exchange{world: w, request: r, at: w.Micros(), url: r.URL, response: httptest.NewRecorder()}
	x.Find, x.Detailed = w.Handler, w.detailed
	if strings.HasPrefix(r.URL, "/") {
		x.url, x.err = w.base+r.URL, w.baseless
	}
	described := r.Request
	described.URL = x.url
	made, err := trial.Make(w.App, &described, x.response)
	if x.err = cmp.Or(x.err, err); x.err != nil {
		return x
	}
	w.Go(func() { x.serve(made) }, func() { x.response.WriteHeader(http.StatusOK) })
	return x
}

// serve serves the request as its server would.
func (x *exchange) serve(made *trial.Request) {
	err := made.Refused
	if err == nil {
		err = walk.Walk(x, made.Server, x.response, made.Request, x.Detailed)
	}
	if err == nil {
		return
	}
	status, known := statusOf(err)
	if !known {
		x.err = err
	}
	x.response.WriteHeader(status)
}

// statusOf returns the status of an error, and whether the error has one.
func statusOf(err error) (status int, known bool) {
	if failed := (caddyhttp.HandlerError{}); errors.As(err, &failed) {
		return failed.StatusCode, true
	}
	return http.StatusInternalServerError, false
}

// Serve implements [walk.Visitor]. It does what the handler does in production.
func (x *exchange) Serve(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	h := x.Find(module)
	v := x.Try(h, limiter.Config{Zones: h.Zones, Store: x.world.ref, Clock: &x.world.Timeline}, r)
	through, err := h.Respond.Begin(rw, r, v)
	completion := v.Release()
	if through == nil || err != nil {
		return err
	}
	return h.Respond.Serve(completion, through, r, next)
}

// Answer implements [walk.Visitor]: the case answers instead of an upstream, but for errors.
func (x *exchange) Answer(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request) error {
	answer := x.request
	given := answer.Answer != 0 || len(answer.AnswerHeader) > 0 || answer.AnswerBody != ""
	failed, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	if failed == nil {
		if answer.Takes > 0 {
			x.world.Sleep(time.Duration(answer.Takes))
		}
		_, _ = io.Copy(io.Discard, r.Body) // as an upstream does
	}
	if written, ok := module.(*caddyhttp.StaticResponse); ok && (failed != nil || !given) {
		return written.ServeHTTP(rw, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil }))
	}
	if failed != nil {
		status, _ := statusOf(failed)
		rw.WriteHeader(status)
		return nil
	}
	for name, values := range answer.AnswerHeader {
		rw.Header()[name] = append(rw.Header()[name], values...)
	}
	if given {
		rw.WriteHeader(cmp.Or(answer.Answer, http.StatusOK))
	}
	_, err := io.WriteString(rw, answer.AnswerBody)
	return err
}

// baseOf returns the beginning of URLs that have none: the scheme, host and port of the only site. If there are
// several sites, the error says what to do.
func baseOf(c *offline.Config) (string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.App.Servers)) {
		hosts, others := c.Hosts(name)
		if slices.Sort(hosts); len(hosts) == 0 && others {
			hosts = []string{"localhost"}
		}
		for _, host := range slices.Compact(hosts) {
			all = append(all, siteOf(c.App, c.App.Servers[name], host))
		}
	}
	switch len(all) {
	case 0:
		return "", errors.New("the config has no server that listens on a port")
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("the config has several sites: write the whole URL, or url %s at the top of the file", all[0])
}

// siteOf returns the beginning of URLs of a host that a server answers.
func siteOf(app *caddyhttp.App, server *caddyhttp.Server, host string) string {
	listen, _ := caddy.ParseNetworkAddress(strings.Join(server.Listen[:min(1, len(server.Listen))], ""))
	scheme, usual := "http", ":80"
	if len(server.TLSConnPolicies) > 0 && int(listen.StartPort) != trial.Port(app, "http") {
		scheme, usual = "https", ":443"
	}
	site := fmt.Sprintf("%s://%s:%d", scheme, strings.ReplaceAll(host, "*", "www"), listen.StartPort)
	return strings.TrimSuffix(strings.TrimSuffix(site, usual), ":0") // a socket has no port
}
