package respond

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
)

// The status codes of gRPC, by https://grpc.github.io/grpc/core/md_doc_statuscodes.html.
const (
	grpcInvalidArgument   = 3
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// mostPushback is the longest wait in seconds that a client's library is asked to do by itself. It waits without
// telling its caller, who should hear of a longer one.
const mostPushback = 60

const fieldContentType = "Content-Type"

// grpcMediaType is the media type of gRPC, which a message format may follow, such as +proto.
const grpcMediaType = "application/grpc"

// isGRPC reports whether the caller of a request speaks gRPC. Callers of gRPC-Web understand a status of HTTP.
func isGRPC(r *http.Request) bool {
	contentType := r.Header.Get(fieldContentType)
	n := len(grpcMediaType)
	if len(contentType) < n || !strings.EqualFold(contentType[:n], grpcMediaType) {
		return false // most requests are none of gRPC
	}
	return len(contentType) == n || contentType[n] == '+' || contentType[n] == ';'
}

// GRPCStatus returns the code of gRPC that the caller of a refused request gets. It is 0 if the caller does not speak gRPC.
func (p *Responder) GRPCStatus(r *http.Request, a *limiter.Answer) uint8 {
	if !isGRPC(r) {
		return 0
	}
	return grpcCode(a)
}

// Final reports whether the refusal of a request never reaches error routes, because it is written in a form.
func (p *Responder) Final(r *http.Request) bool { return p.Problem || isGRPC(r) }

// grpcCode returns the code of gRPC for a refusal.
func grpcCode(a *limiter.Answer) uint8 {
	switch {
	case a.Policy != nil, a.Status == http.StatusTooManyRequests:
		return grpcResourceExhausted
	case a.Status == http.StatusServiceUnavailable:
		return grpcUnavailable
	case a.Status == http.StatusUnauthorized:
		return grpcUnauthenticated
	case a.Status == http.StatusForbidden:
		return grpcPermissionDenied
	case a.Status >= http.StatusInternalServerError:
		return grpcInternal
	}
	return grpcInvalidArgument
}

// writeGRPC writes a status of gRPC as an answer that has only trailers, which are in the header then. Pushback is what a
// client's retry policy obeys, by gRFC A6.
func writeGRPC(w http.ResponseWriter, a *limiter.Answer, retryAfter int64) {
	pushback := "-1" // a client must not retry by itself
	if retryAfter > 0 && retryAfter <= mostPushback {
		pushback = strconv.FormatInt(retryAfter*1000, 10)
	}
	header := w.Header()
	header.Set(fieldContentType, grpcMediaType)
	header.Set("Grpc-Status", strconv.Itoa(int(grpcCode(a))))
	header.Set("Grpc-Message", url.PathEscape(detail(a, retryAfter)))
	header.Set("Grpc-Retry-Pushback-Ms", pushback)
	w.WriteHeader(http.StatusOK)
}
