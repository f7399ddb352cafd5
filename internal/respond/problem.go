package respond

import (
	"encoding/json"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// problem is the body of a refusal: RFC 9457, with the type that
// draft-ietf-httpapi-ratelimit-headers defines.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Policies []string `json:"violated-policies,omitempty"`
}

const (
	problemMediaType = "application/problem+json"
	quotaExceeded    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle       = "Request cannot be satisfied as assigned quota has been exceeded"
	blankType        = "about:blank" // which means no more than the status
)

// writeProblem names the zones whose limits refuse, as RateLimit-Policy does. The verdict is nil
// if the request was refused without a limit; then the problem says what is wrong with it.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, f *limiter.Refusal, v *limiter.Verdict) error {
	p := problem{Type: blankType, Title: http.StatusText(status), Status: status}
	if v == nil {
		p.Detail = f.Zone.Detail(f.Err)
	} else {
		p.Type, p.Title = quotaExceeded, quotaTitle
		for i := range v.Enforced {
			if !v.Decisions[i].Allowed {
				p.Policies = append(p.Policies, v.Entries[i].Policy.HeaderZone)
			}
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", problemMediaType)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, err = w.Write(append(body, '\n'))
	}
	return err
}
