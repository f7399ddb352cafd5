package respond

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
)

// problem is a JSON problem (RFC 9457) with the types that draft-ietf-httpapi-ratelimit-headers defines, and members for
// programs that read it. There is nothing in it of a zone that clients do not see, and nothing of other clients.
type problem struct {
	Type       string   `json:"type"` // says what clients can do
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Zone       string   `json:"zone,omitempty"`              // empty if the zone is hidden, or if no zone refuses
	RetryAfter int64    `json:"retry_after,omitempty"`       // whole seconds; 0 if there is no wait that helps
	Policies   []string `json:"violated-policies,omitempty"` // the zones whose limits refuse, as in RateLimit-Policy
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// typeOf returns the type and the title of a problem. What is wrong with a request has none, so that it means no more than its
// status.
func typeOf(a *limiter.Answer) (name, title string) {
	switch {
	case a.Outcome == outcome.FailedClosed:
		return problemTypes + "temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"
	case a.Policy == nil:
		return "about:blank", http.StatusText(a.Status)
	case a.Decision.Banned:
		return problemTypes + "abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"
	}
	return problemTypes + "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"
}

// tells reports whether the answer may name the zone whose limit refuses.
func tells(a *limiter.Answer) bool { return a.Policy != nil && isShown(a.Zone) }

// writeProblem writes the problem of an answer. The wait is that of Retry-After. The answer to HEAD has no body.
func writeProblem(w http.ResponseWriter, r *http.Request, a *limiter.Answer, v *limiter.Verdict, retryAfter int64) error {
	p := problem{Status: a.Status, Detail: detail(a, retryAfter), RetryAfter: retryAfter}
	p.Type, p.Title = typeOf(a)
	if tells(a) {
		p.Zone = a.Zone.Name
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; v.Refused() && !e.DryRun && !e.Decision.Allowed && isShown(e.Zone) {
			p.Policies = append(p.Policies, e.Policy.HeaderZone)
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	w.Header().Set(fieldContentType, "application/problem+json")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, err = w.Write(append(body, '\n'))
	}
	return err
}

// detail says why the request is refused, and what the client should change.
func detail(a *limiter.Answer, retryAfter int64) string {
	wait := fmt.Sprintf("%d seconds", retryAfter)
	if retryAfter == 1 {
		wait = "1 second"
	}
	why, d := "a limit is used up", &a.Decision
	switch {
	case a.Outcome == outcome.FailedClosed:
		return "the server has no capacity for this request now. Try again in " + wait + ". The request is not the reason."
	case a.Policy == nil:
		return a.Err.Error() + ". Change the request: waiting does not help."
	case a.NeverPasses() && tells(a):
		return fmt.Sprintf("this request costs %d, the limit is %d. Ask for less in one request: waiting does not help.", a.Cost, d.Quota)
	case a.NeverPasses():
		return "this request costs more than the limit. Ask for less in one request: waiting does not help."
	case d.Banned:
		why = "the client is banned, and requests during a ban do not pass"
	case tells(a):
		why = fmt.Sprintf("the limit of zone %s is used up: %d left of %d, the request costs %d", a.Zone.Name, d.Remaining, d.Quota, a.Cost)
	}
	if retryAfter == 0 {
		return why + ". Stop: waiting does not help."
	}
	return why + ". Wait " + wait + " before the next request."
}
