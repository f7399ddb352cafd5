//go:build deep

package docs_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// claims are what a token says.
type claims struct {
	Subject string `json:"sub"`
	Plan    string `json:"plan,omitempty"`
	Expiry  int64  `json:"exp"`
}

var encoding = base64.RawURLEncoding

// token returns a JSON Web Token with a signature.
func (c claims) token() string {
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and a number
	}
	signed := encoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encoding.EncodeToString(payload)
	return signed + "." + signature(signed)
}

func signature(signed string) string {
	h := hmac.New(sha256.New, []byte("the secret of the tests"))
	h.Write([]byte(signed))
	return encoding.EncodeToString(h.Sum(nil))
}

func subject(name string) claims {
	return claims{Subject: name, Expiry: time.Now().Add(time.Hour).Unix()}
}

// tokens are the variables with which the commands of recipes run.
func tokens() []string {
	alice, bob := subject("alice").token(), subject("bob").token()
	forged := alice[:strings.LastIndex(alice, ".")] + bob[strings.LastIndex(bob, "."):]
	return []string{"ALICE=" + alice, "BOB=" + bob, "FORGED=" + forged}
}

// verifying adds the service that verifies tokens to an upstream.
func verifying(upstream func(*harness.Backend, http.ResponseWriter, *http.Request)) func(*harness.Backend, http.ResponseWriter, *http.Request) {
	return func(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/verify" {
			verify(w, r)
			return
		}
		upstream(b, w, r)
	}
}

// verify is the service that forward_auth asks about a token: it answers with the claims of one that is
// right, and otherwise 401.
func verify(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	signed, signs := "", ""
	if end := strings.LastIndex(token, "."); end > 0 {
		signed, signs = token[:end], token[end+1:]
	}
	header, payload, _ := strings.Cut(signed, ".")
	var algorithm struct{ Alg string }
	var c claims
	for part, into := range map[string]any{header: &algorithm, payload: &c} {
		if text, err := encoding.DecodeString(part); err != nil || json.Unmarshal(text, into) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
	}
	if algorithm.Alg != "HS256" || !hmac.Equal([]byte(signature(signed)), []byte(signs)) || time.Now().Unix() >= c.Expiry {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("X-Token-Subject", c.Subject)
	if c.Plan != "" {
		w.Header().Set("X-Token-Plan", c.Plan)
	}
}
