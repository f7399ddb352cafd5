package respond

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// problem is the body of a refusal: RFC 9457, with the types that
// draft-ietf-httpapi-ratelimit-headers defines.
type problem struct {
	problemType
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Policies []string `json:"violated-policies,omitempty"`
}

// problemType says what kind of problem it is, so that clients can tell what to do.
type problemType struct {
	URI   string `json:"type"`
	Title string `json:"title"`
}

const (
	problemMediaType = "application/problem+json"
	problemTypes     = "https://iana.org/assignments/http-problem-types#"
)

// ofKind are the types of the kinds of problems. What is wrong with a request has none, so that it means no more
// than its status.
var ofKind = map[limiter.Problem]problemType{
	limiter.QuotaExceeded:   {problemTypes + "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"},
	limiter.ReducedCapacity: {problemTypes + "temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"},
	limiter.AbnormalUsage:   {problemTypes + "abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"},
}

// problemOf describes an answer. It names the zones whose limits refuse, as RateLimit-Policy does. If the request was
// refused without a limit, it says what is wrong with the request.
func problemOf(a *limiter.Answer, v *limiter.Verdict) problem {
	if a.Problem == limiter.WrongRequest {
		return problem{problemType: problemType{"about:blank", http.StatusText(a.Status)}, Status: a.Status, Detail: a.Zone.Detail(a.Err)}
	}
	p := problem{problemType: ofKind[a.Problem], Status: a.Status}
	if a.NeverPasses() {
		p.Detail = fmt.Sprintf("this request costs %d, the limit is %d", a.Cost, a.Decision.Quota)
	}
	for i := range v.Enforced {
		if a.Policy != nil && !v.Decisions[i].Allowed {
			p.Policies = append(p.Policies, v.Entries[i].Policy.HeaderZone)
		}
	}
	return p
}

func writeProblem(w http.ResponseWriter, r *http.Request, p problem) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", problemMediaType)
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, err = w.Write(append(body, '\n'))
	}
	return err
}
