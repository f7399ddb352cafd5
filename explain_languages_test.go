package caddyratelimit_test

import (
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// speak makes a request one of a language that refusals may be written in.
func speak(r *rand.Rand, q *adminapi.Request) {
	q.Method = one(r, "POST", "POST", "POST", "GET")
	kind := one(r, "grpc", "grpc+proto", "grpc-web", "grpc-web-text", "json", "json", "json", "x-www-form-urlencoded")
	q.Header = append(q.Header, "Content-Type: application/"+kind)
	if kind == "json" {
		q.Body = []byte(one(r, `{"method":"m","params":{"cost":1}}`, `[{"method":"m"}]`, `{"params":{"cost":1}}`, "{"))
	}
}

// languageOf returns the language of a refusal, and its code of gRPC.
func languageOf(got *http.Response) (language string, code uint8) {
	kind := got.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "application/grpc"):
		status := got.Header.Get("Grpc-Status")
		if body, _ := io.ReadAll(got.Body); strings.HasPrefix(kind, "application/grpc-web") {
			if strings.HasPrefix(kind, "application/grpc-web-text") {
				body, _ = base64.StdEncoding.DecodeString(string(body))
			}
			_, status, _ = strings.Cut(string(body), "grpc-status: ")
			status, _, _ = strings.Cut(status, "\r\n")
		}
		n, _ := strconv.ParseUint(status, 10, 8)
		return "grpc", uint8(n)
	case kind == "application/problem+json":
		return "problem", 0
	}
	return "", 0
}
