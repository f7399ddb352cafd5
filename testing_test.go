package caddyratelimit

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// provision loads a handler into a config, for as long as the test runs.
func provision(t testing.TB, ctx caddy.Context, json string) *Handler {
	t.Helper()
	return caddytest.LoadInto(t, ctx, json).(*Handler)
}

// serve sends a request through a handler and returns the status and the header.
func serve(t testing.TB, h *Handler, remote string) (int, http.Header) {
	t.Helper()
	return caddytest.Serve(t, h, remote)
}

// The helpers of caddytest under short names.
var (
	config   = caddytest.Config
	request  = caddytest.Request
	replaced = caddytest.Replaced
	passing  = caddytest.Passing
	statuses = caddytest.Statuses
)

// oneRefusal is what the first zone of a handler says to a client.
func oneRefusal(h *Handler, key string) *refusal {
	z := h.zones[0]
	return &refusal{
		zone: z, key: key, grant: z.Policy, decision: algorithms.Decision{RetryAfter: algorithms.Never},
		status: h.Status, err: z.Exceeded,
	}
}
