// Package explain says what would happen to a request, and charges nothing.
package explain

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// Explain explains a request to an HTTP app whose rate limit handlers find finds. It is an error if there can be no such request.
func Explain(
	ctx context.Context, app *caddyhttp.App, find func(caddyhttp.MiddlewareHandler) *trial.Handler, described *adminapi.Request,
) (*adminapi.Explanation, error) {
	response := httptest.NewRecorder()
	made, err := trial.Make(app, described, response)
	if err != nil {
		return nil, err
	}
	x := &explainer{ctx: ctx, stores: make(map[string]*peeking), answer: &adminapi.Explanation{
		Method: made.Method, URL: made.Said, From: made.RemoteAddr, Server: made.Name, Listen: made.Server.Listen,
		ClientIP: clientip.Client(made.Request), Steps: []adminapi.Step{}, Zones: []adminapi.Visit{},
	}}
	x.Find, x.Detailed = find, true
	if made.Refused != nil {
		x.fail(made.Refused)
		return x.answer, nil
	}
	x.conclude(walk.Walk(x, made.Server, response, made.Request, true))
	return x.answer, nil
}

// explainer decides the request over stores that peek. It implements [walk.Visitor].
type explainer struct {
	trial.Trace
	ctx     context.Context
	answer  *adminapi.Explanation
	unasked string // what the outcome is if a store did not answer

	// What the request would charge stays charged until its end, and time goes on while it waits.
	stores map[string]*peeking // by the ID of the store
	clock  clock.Timeline
}

// Serve implements [walk.Visitor].
func (x *explainer) Serve(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if passes, err := x.decide(module, r); err != nil || !passes {
		return err
	}
	return next.ServeHTTP(rw, r)
}

// conclude says what is decided on the request at the end of its way, with the error that nothing has
// handled.
func (x *explainer) conclude(err error) {
	met := false
	x.answer.Steps, x.answer.Wait = append(x.answer.Steps, x.Steps...), x.Wait.Seconds()
	for _, v := range x.Visits {
		x.answer.Zones = append(x.answer.Zones, v.Visit)
		met = met || v.Met
	}
	switch {
	case x.Refused:
		x.answer.Outcome = outcome.Names[x.Refusal.Outcome]
		if x.Refusal.Zone != nil {
			x.answer.Zone = x.Refusal.Zone.Name
		}
		return
	case err != nil:
		x.fail(err)
		if !met {
			return
		}
	}
	x.answer.Passes = true
	switch {
	case x.unasked != "":
		x.answer.Outcome = x.unasked
	case met:
		x.answer.Outcome = outcome.Names[outcome.Allowed]
	case x.Handlers > 0:
		x.answer.Outcome, x.answer.Reason = adminapi.NotLimited, "the matchers of no zone match it"
	default:
		x.answer.Outcome, x.answer.Reason = adminapi.NotLimited, "it meets no rate_limit handler"
	}
}

// fail records that something else than a limit refuses the request.
func (x *explainer) fail(err error) {
	x.answer.Outcome, x.answer.Status, x.answer.Reason = adminapi.Failed, http.StatusInternalServerError, err.Error()
	if failed := (caddyhttp.HandlerError{}); errors.As(err, &failed) {
		x.answer.Status, x.answer.Reason = failed.StatusCode, http.StatusText(failed.StatusCode)
		if failed.Err != nil {
			x.answer.Reason = failed.Err.Error()
		}
	}
}
