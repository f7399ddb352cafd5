package respond

import (
	"mime"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// answerForm is a form of a refusal.
type answerForm uint8

const (
	bareForm    answerForm = iota // a status, or what error routes write
	problemForm                   // a JSON problem
	grpcForm
	grpcWebForm
	grpcWebTextForm
)

// formOf returns the form in which the caller of a request reads a refusal. Callers of gRPC can read no other.
func (p *Responder) formOf(r *http.Request) answerForm {
	form := grpcFormOf(r.Header.Get(fieldContentType))
	if form == bareForm && p.Problem {
		return problemForm
	}
	return form
}

// Written returns how the refusal of a request reaches its caller.
func (p *Responder) Written(r *http.Request, a *limiter.Answer) limiter.Written {
	switch p.formOf(r) {
	case bareForm:
		return limiter.Written{Status: a.Status}
	case problemForm:
		return limiter.Written{Language: "problem", Status: a.Status}
	}
	return limiter.Written{Language: "grpc", Status: http.StatusOK, GRPCStatus: grpcCode(a.Problem, a.Status)}
}

// Final reports whether the refusal of a request never reaches error routes, because it is written in a form.
func (p *Responder) Final(r *http.Request) bool { return p.formOf(r) != bareForm }

const fieldContentType = "Content-Type"

// mediaType returns the media type of a field's value in small letters, without parameters, or "".
func mediaType(value string) string {
	name, _, _ := mime.ParseMediaType(value)
	return name
}
