package respond

import (
	"encoding/json"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// problem is a refusal in JSON: RFC 9457, with the types that draft-ietf-httpapi-ratelimit-headers defines, and
// members for programs that read it.
type problem struct {
	problemType
	Status     int      `json:"status"`
	Detail     string   `json:"detail,omitempty"`
	Action     string   `json:"action"`
	Zone       string   `json:"zone,omitempty"`
	Limit      *int64   `json:"limit,omitempty"`
	Remaining  *int64   `json:"remaining,omitempty"`
	Cost       *int64   `json:"cost,omitempty"`
	RetryAfter int64    `json:"retry_after,omitempty"`
	Policies   []string `json:"violated-policies,omitempty"`
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

// problem returns what a client is told as a problem. It names the zones whose limits refuse, as RateLimit-Policy
// does. If the request was refused without a limit, it says what is wrong with the request.
func (t *told) problem() problem {
	p := problem{
		problemType: ofKind[t.kind], Status: t.status, Detail: t.detail, Action: t.action(),
		Zone: t.zone, RetryAfter: t.retryAfter, Policies: t.policies,
	}
	if t.kind == limiter.WrongRequest {
		p.problemType = problemType{"about:blank", http.StatusText(t.status)}
	}
	if q := t.quota; q != nil {
		p.Limit, p.Remaining, p.Cost = &q.limit, &q.remaining, &q.cost
	}
	return p
}

func (t *told) writeProblem(w http.ResponseWriter, r *http.Request) error {
	body, err := json.Marshal(t.problem())
	if err != nil {
		return err
	}
	return writeBody(w, r, t.status, problemMediaType, append(body, '\n'))
}

// writeBody writes an answer with a body, which the answer to HEAD has not.
func writeBody(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) error {
	w.Header().Set(fieldContentType, mediaType)
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write(body)
	return err
}
