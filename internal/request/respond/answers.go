package respond

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
)

// Written returns how the refusal of a request reaches its caller. Callers of gRPC can read no other form.
func (p *Responder) Written(r *http.Request, a *limiter.Answer) limiter.Written {
	switch {
	case isGRPC(r):
		return limiter.Written{Language: "grpc", Status: http.StatusOK, GRPCStatus: grpcCode(a.Problem, a.Status)}
	case p.Problem:
		return limiter.Written{Language: "problem", Status: a.Status}
	}
	return limiter.Written{Status: a.Status}
}

// Final reports whether the refusal of a request never reaches error routes, because it is written in a form.
func (p *Responder) Final(r *http.Request) bool { return p.Problem || isGRPC(r) }

const fieldContentType = "Content-Type"
