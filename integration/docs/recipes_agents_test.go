//go:build deep

package docs_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// agent is one that signs its requests, as Web Bot Auth does it. Its directory has the key.
type agent struct {
	name string
	key  ed25519.PrivateKey
}

// knownAgents are the agents whose directories the service that verifies signatures has read, by name.
var knownAgents = map[string]agent{}

func newAgent(name string) agent {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	a := agent{name, ed25519.NewKeyFromSeed(seed)}
	knownAgents[name] = a
	return a
}

var partner, stranger = newAgent("https://partner.example"), newAgent("https://stranger.example")

// signatureBase is what an agent signs, by RFC 9421, section 2.5.
func signatureBase(authority, name, parameters string) []byte {
	return fmt.Appendf(nil, "\"@authority\": %s\n\"signature-agent\": %s\n\"@signature-params\": %s", strings.ToLower(authority), strconv.Quote(name), parameters)
}

// signs returns the headers of a request to a host.
func (a agent) signs(host string) []string {
	now := time.Now()
	parameters := fmt.Sprintf(`("@authority" "signature-agent");created=%d;expires=%d;keyid="1";tag="web-bot-auth"`, now.Unix(), now.Add(time.Hour).Unix())
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(a.key, signatureBase(host, a.name, parameters)))
	return []string{"Signature-Agent: " + strconv.Quote(a.name), "Signature-Input: sig=" + parameters, "Signature: sig=:" + signature + ":"}
}

// verifyAgent is the service that forward_auth asks about a signature: it answers with the agent of one that is right, with nothing
// without one, and otherwise 401.
func verifyAgent(w http.ResponseWriter, r *http.Request) {
	claims, inputs, signatures := r.Header["Signature-Agent"], r.Header["Signature-Input"], r.Header["Signature"]
	if len(claims)+len(inputs)+len(signatures) == 0 {
		return
	}
	if len(claims) != 1 || len(inputs) != 1 || len(signatures) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name, err := strconv.Unquote(claims[0])
	a, known := knownAgents[name]
	parameters, named := strings.CutPrefix(inputs[0], `sig=`)
	_, expires, _ := strings.Cut(parameters, ";expires=")
	expires, _, _ = strings.Cut(expires, ";")
	until, badTime := strconv.ParseInt(expires, 10, 64)
	text, bounded := strings.CutPrefix(strings.TrimSuffix(signatures[0], ":"), "sig=:")
	signature, badText := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil, !known, !named, !bounded, badTime != nil, badText != nil, time.Now().Unix() >= until,
		!strings.HasPrefix(parameters, `("@authority" "signature-agent");`),
		!ed25519.Verify(a.key.Public().(ed25519.PublicKey), signatureBase(r.Host, name, parameters), signature):
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.Header().Set("X-Verified-Agent", name)
	}
}
