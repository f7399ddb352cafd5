package respond

import (
	"fmt"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// told is what a refused client is told, in every language. There is nothing in it of a zone that clients do not
// see, and nothing of other clients.
type told struct {
	kind       limiter.Problem
	status     int
	retryAfter int64  // whole seconds; 0 if there is no wait that helps
	never      bool   // the cost is above the limit
	detail     string // what is wrong with the request; may be empty
	zone       string // empty if the zone is hidden, or if no zone refuses
	quota      *quota
	policies   []string // the names of all zones whose limits refuse, as in RateLimit-Policy
}

// quota are the numbers of the zone that refuses.
type quota struct{ limit, remaining, cost int64 }

// toldOf returns what an answer tells the client. The wait is that of Retry-After.
func toldOf(a *limiter.Answer, v *limiter.Verdict, retryAfter int64) told {
	t := told{kind: a.Problem, status: a.Status, retryAfter: retryAfter}
	if a.Problem == limiter.WrongRequest {
		t.detail = a.Zone.Detail(a.Err)
		return t
	}
	t.never = a.NeverPasses()
	if a.Zone != nil && !a.Zone.Hidden() {
		t.zone = a.Zone.Name
		if a.Policy != nil && !a.Decision.Banned {
			t.quota = &quota{a.Decision.Quota, a.Decision.Remaining, a.Cost}
		}
		if t.never {
			t.detail = fmt.Sprintf("this request costs %d, the limit is %d", a.Cost, a.Decision.Quota)
		}
	}
	for i := range v.Enforced {
		if a.Policy != nil && !v.Decisions[i].Allowed && !v.Entries[i].Zone.Hidden() {
			t.policies = append(t.policies, v.Entries[i].Policy.HeaderZone)
		}
	}
	return t
}

// write writes the answer in a form.
func (t *told) write(w http.ResponseWriter, r *http.Request, form answerForm) error {
	switch form {
	case grpcForm:
		return t.writeGRPC(w, r)
	case grpcWebForm, grpcWebTextForm:
		return t.writeGRPCWeb(w, r, form)
	}
	return t.writeProblem(w, r)
}

// summary says in a sentence why the request is refused.
func (t *told) summary() string {
	switch {
	case t.detail != "":
		return t.detail
	case t.kind == limiter.WrongRequest:
		return http.StatusText(t.status)
	case t.kind == limiter.ReducedCapacity:
		return "the server has no capacity for this request now"
	case t.kind == limiter.AbnormalUsage:
		return "the client is banned"
	case t.quota != nil:
		return fmt.Sprintf("the limit of zone %s is used up: %d left of %d, the request costs %d", t.zone, t.quota.remaining, t.quota.limit, t.quota.cost)
	case t.never:
		return "this request costs more than the limit"
	}
	return "a limit is used up"
}

// action says in a sentence what the client should change.
func (t *told) action() string {
	switch {
	case t.kind == limiter.WrongRequest:
		return "Change the request: waiting does not help."
	case t.never:
		return "Ask for less in one request: waiting does not help."
	case t.retryAfter == 0:
		return "Stop: waiting does not help."
	case t.kind == limiter.AbnormalUsage:
		return fmt.Sprintf("Send nothing for %s: requests during a ban do not pass.", seconds(t.retryAfter))
	case t.kind == limiter.ReducedCapacity:
		return fmt.Sprintf("Try again in %s. The server is busy, and the request is not the reason.", seconds(t.retryAfter))
	}
	return fmt.Sprintf("Wait %s before the next request.", seconds(t.retryAfter))
}

func seconds(n int64) string {
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}
