package respond

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// The languages that the option answers takes.
const (
	answersGRPC    = "grpc"
	answersJSONRPC = "json-rpc"
	answersProblem = "problem"
	answersHTML    = "html"
	answersOff     = "off"
)

// Answers are the languages in which refusals are written for callers that speak them.
type Answers struct {
	grpc, jsonRPC bool
	byAccept      []answerForm // those that the field Accept chooses, in the order of the option
	yields        bool         // nobody has chosen the languages, so error routes come first
}

// answerForm is a form of a refusal.
type answerForm uint8

const (
	bareForm    answerForm = iota // a status, or what error routes write
	problemForm                   // a JSON problem
	htmlForm
	jsonRPCForm
	grpcForm
	grpcWebForm
	grpcWebTextForm
)

// languages are the languages of the forms.
var languages = [...]string{
	bareForm: "", problemForm: answersProblem, htmlForm: answersHTML, jsonRPCForm: answersJSONRPC,
	grpcForm: answersGRPC, grpcWebForm: answersGRPC, grpcWebTextForm: answersGRPC,
}

// NewAnswers resolves the option answers. If it is not set, gRPC is spoken where there are no error routes.
func NewAnswers(chosen []string) (a Answers, err error) {
	if len(chosen) == 0 {
		return Answers{grpc: true, yields: true}, nil
	}
	for i, one := range chosen {
		switch {
		case slices.Contains(chosen[:i], one):
			return a, fmt.Errorf("answers names %s twice", one)
		case one == answersOff && len(chosen) > 1:
			return a, fmt.Errorf("answers off excludes languages, got %s", strings.Join(chosen, " "))
		}
		switch one {
		case answersGRPC:
			a.grpc = true
		case answersJSONRPC:
			a.jsonRPC = true
		case answersProblem:
			a.byAccept = append(a.byAccept, problemForm)
		case answersHTML:
			a.byAccept = append(a.byAccept, htmlForm)
		case answersOff:
		default:
			return a, fmt.Errorf("answers must be grpc, json-rpc, problem, html or off, got %q", one)
		}
	}
	return a, nil
}

// formOf returns the form in which the caller of a request reads a refusal.
func (p *Responder) formOf(r *http.Request) answerForm {
	usual := bareForm
	if p.Problem {
		usual = problemForm
	}
	a := &p.Answers
	if a.yields && usual == bareForm && p.ErrorRoutes(r) {
		return usual
	}
	if a.grpc {
		if form := grpcFormOf(r.Header.Get(fieldContentType)); form != bareForm {
			return form
		}
	}
	if a.jsonRPC && speaksJSONRPC(r) {
		return jsonRPCForm
	}
	if len(a.byAccept) > 0 {
		return acceptedForm(r.Header[fieldAccept], a.byAccept, usual)
	}
	return usual
}

// Written returns how the refusal of a request reaches its caller.
func (p *Responder) Written(r *http.Request, a *limiter.Answer) limiter.Written {
	form, t := p.formOf(r), told{kind: a.Problem, status: a.Status}
	w := limiter.Written{Language: languages[form], Status: t.statusIn(form, r)}
	if form >= grpcForm {
		w.GRPCStatus = t.grpcCode()
	}
	return w
}

// statusIn returns the status of HTTP of an answer in a form. The callers of gRPC look for their own status.
func (t *told) statusIn(form answerForm, r *http.Request) int {
	switch {
	case form >= grpcForm:
		return http.StatusOK
	case form == jsonRPCForm:
		calls, _ := rpcCallsOf(r)
		return t.statusFor(&calls)
	}
	return t.status
}

// Final reports whether the refusal of a request never reaches error routes, because it is written in a form.
func (p *Responder) Final(r *http.Request) bool { return p.formOf(r) != bareForm }

const (
	fieldContentType = "Content-Type"
	fieldAccept      = "Accept"
)

// mediaType returns the media type of a field's value in small letters, without parameters, or "".
func mediaType(value string) string {
	if t, _, err := mime.ParseMediaType(value); err == nil || t != "" {
		return t
	}
	return ""
}

// addVary says that the answer depends on a field of the request. What is said before stays.
func addVary(header http.Header, field string) {
	for _, line := range header["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); strings.EqualFold(name, field) || name == "*" {
				return
			}
		}
	}
	header["Vary"] = append(header["Vary"], field)
}
