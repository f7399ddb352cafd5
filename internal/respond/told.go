package respond

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// told is what a refused client is told, in every language. In JSON it is a problem (RFC 9457) with the types that
// draft-ietf-httpapi-ratelimit-headers defines, and members for programs that read it. There is nothing in it of a
// zone that clients do not see, and nothing of other clients.
type told struct {
	problemType
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"` // what is wrong with the request
	Action string `json:"action"`
	Zone   string `json:"zone,omitempty"` // empty if the zone is hidden, or if no zone refuses
	*quota
	RetryAfter int64    `json:"retry_after,omitempty"`       // whole seconds; 0 if there is no wait that helps
	Policies   []string `json:"violated-policies,omitempty"` // the zones whose limits refuse, as in RateLimit-Policy

	kind  limiter.Problem
	never bool // the cost is above the limit
}

// quota are the numbers of the zone that refuses.
type quota struct {
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
	Cost      int64 `json:"cost"`
}

// problemType says what kind of problem it is, so that clients can tell what to do.
type problemType struct {
	URI   string `json:"type"`
	Title string `json:"title"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// ofKind are the types of the kinds of problems. What is wrong with a request has none, so that it means no more
// than its status.
var ofKind = map[limiter.Problem]problemType{
	limiter.QuotaExceeded:   {problemTypes + "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"},
	limiter.ReducedCapacity: {problemTypes + "temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"},
	limiter.AbnormalUsage:   {problemTypes + "abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"},
}

// toldOf returns what an answer tells the client. The wait is that of Retry-After.
func toldOf(a *limiter.Answer, v *limiter.Verdict, retryAfter int64) *told {
	t := &told{problemType: ofKind[a.Problem], Status: a.Status, RetryAfter: retryAfter, kind: a.Problem, never: a.NeverPasses()}
	switch {
	case a.Problem == limiter.WrongRequest:
		t.problemType = problemType{"about:blank", http.StatusText(a.Status)}
		t.Detail = a.Zone.Detail(a.Err)
	case a.Zone != nil && isShown(a.Zone):
		t.Zone = a.Zone.Name
		if a.Policy != nil && !a.Decision.Banned {
			t.quota = &quota{a.Decision.Quota, a.Decision.Remaining, a.Cost}
		}
		if t.never {
			t.Detail = fmt.Sprintf("this request costs %d, the limit is %d", a.Cost, a.Decision.Quota)
		}
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; a.Policy != nil && !e.DryRun && !e.Decision.Allowed && isShown(e.Zone) {
			t.Policies = append(t.Policies, e.Policy.HeaderZone)
		}
	}
	t.Action = t.action()
	return t
}

// summary says in a sentence why the request is refused.
func (t *told) summary() string {
	switch {
	case t.Detail != "":
		return t.Detail
	case t.kind == limiter.WrongRequest:
		return t.Title
	case t.kind == limiter.ReducedCapacity:
		return "the server has no capacity for this request now"
	case t.kind == limiter.AbnormalUsage:
		return "the client is banned"
	case t.quota != nil:
		return fmt.Sprintf("the limit of zone %s is used up: %d left of %d, the request costs %d", t.Zone, t.Remaining, t.Limit, t.Cost)
	case t.never:
		return "this request costs more than the limit"
	}
	return "a limit is used up"
}

// action says in a sentence what the client should change.
func (t *told) action() string {
	wait := fmt.Sprintf("%d seconds", t.RetryAfter)
	if t.RetryAfter == 1 {
		wait = "1 second"
	}
	switch {
	case t.kind == limiter.WrongRequest:
		return "Change the request: waiting does not help."
	case t.never:
		return "Ask for less in one request: waiting does not help."
	case t.RetryAfter == 0:
		return "Stop: waiting does not help."
	case t.kind == limiter.AbnormalUsage:
		return fmt.Sprintf("Send nothing for %s: requests during a ban do not pass.", wait)
	case t.kind == limiter.ReducedCapacity:
		return fmt.Sprintf("Try again in %s. The server is busy, and the request is not the reason.", wait)
	}
	return fmt.Sprintf("Wait %s before the next request.", wait)
}

// write writes the answer in a form.
func (t *told) write(w http.ResponseWriter, r *http.Request, form answerForm) error {
	if form != problemForm {
		return t.writeGRPC(w, r, form)
	}
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return writeBody(w, r, t.Status, "application/problem+json", append(body, '\n'))
}

// writeBody writes an answer with a body, which the answer to HEAD has not.
func writeBody(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) error {
	w.Header().Set(fieldContentType, mediaType)
	w.WriteHeader(status)
	if r.Method == http.MethodHead || len(body) == 0 {
		return nil
	}
	_, err := w.Write(body)
	return err
}
