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

var (
	// quotaExceeded: the client has to wait until there is room in its limit.
	quotaExceeded = problemType{problemTypes + "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"}

	// reducedCapacity: the server cannot do more now, whatever the client has sent before.
	reducedCapacity = problemType{problemTypes + "temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"}

	// abnormalUsage: the client is banned.
	abnormalUsage = problemType{problemTypes + "abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"}
)

// blankType is a problem that means no more than its status.
func blankType(status int) problemType { return problemType{"about:blank", http.StatusText(status)} }

// problemOf describes a refusal. It names the zones whose limits refuse, as RateLimit-Policy does. The
// verdict is nil if the request was refused without a limit. Then the problem says what is wrong with it.
func problemOf(status int, f *limiter.Refusal, v *limiter.Verdict) problem {
	if v == nil {
		return problem{problemType: blankType(status), Status: status, Detail: f.Zone.Detail(f.Err)}
	}
	p := problem{problemType: quotaExceeded, Status: status}
	switch {
	case f.Decision.Banned:
		p.problemType = abnormalUsage
	case f.Zone.Sheds(f.Policy, &f.Decision):
		p.problemType = reducedCapacity
	}
	if f.NeverPasses() {
		p.Detail = fmt.Sprintf("this request costs %d, the limit is %d", f.Cost, f.Decision.Quota)
	}
	for i := range v.Enforced {
		if !v.Decisions[i].Allowed {
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
