package admin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// storeError says that the store did not answer, and what that means for requests.
func storeError(z *running.Zone, err error) error {
	means := map[string]string{
		config.AllowOnError: "the zone lets all requests pass", config.DenyOnError: "the zone answers 503 to all requests",
		config.LocalOnError: "each instance counts for itself",
	}[z.OnStoreError]
	return adminError(http.StatusServiceUnavailable, "%s does not answer: %s; meanwhile %s (on_store_error %s)",
		pool.Describe(z.Store.Backend), reason(err), means, z.OnStoreError)
}

// reason says what keeps a store from answering, in the same words for all zones: without those of the breaker, and
// without the port that a connection had on this machine.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), store.ErrUnavailable.Error()+": ")
	if of := new(net.OpError); errors.As(err, &of) && of.Source != nil {
		text = strings.Replace(text, of.Source.String()+"->", "", 1)
	}
	return text
}

// readKey reads the key of a zone.
func (c *adminCall) readKey() (string, error) {
	named, err := c.readKeyQuery()
	if err != nil {
		return "", err
	}
	return named.keyIn(c.zone)
}

// readTarget reads what a call names: a key, or a network with several keys.
func (c *adminCall) readTarget() (of store.Selector, err error) {
	if _, ok := c.zone.Store.Store.Store.(store.Overrider); !ok {
		return of, adminError(http.StatusNotImplemented, "%s has neither overrides nor lists of keys", pool.Describe(c.zone.Store.Backend))
	}
	named, err := c.readKeyQuery()
	if err != nil {
		return of, err
	}
	if named.text != nil {
		if of.Network = c.zone.Template.Network(named.text[0]); of.Network.IsValid() {
			return of, nil
		}
	}
	if of.Key, err = named.keyIn(c.zone); err == nil && c.zone.TakesNetworks() {
		of.Network = key.ParseAddress(of.Key).Masked()
	}
	return of, err
}

// networksOf returns the networks that have overrides in the zone, or nil.
func networksOf(z *running.Zone) *store.Networks {
	if !z.TakesNetworks() {
		return nil
	}
	return z.Store.Networks(z.Rules()[0])
}

// keyQuery names a key in one of three ways. The zero keyQuery names none.
type keyQuery struct {
	text  []string // the value that a request would have
	exact []string // the key itself
	parts []string // the values of the zone's placeholders
}

func (c *adminCall) readKeyQuery() (k keyQuery, err error) {
	k = keyQuery{text: c.query["key"], exact: c.query["key_base64"], parts: c.query["part"]}
	if len(k.text)+len(k.exact)+min(1, len(k.parts)) > 1 {
		return k, adminError(badRequest, "name one key: by key, key_base64 or part")
	}
	if k.exact != nil {
		decoded, err := base64.StdEncoding.DecodeString(k.exact[0])
		if err != nil {
			return k, adminError(badRequest, "key_base64: %w; percent-encode + / and =", err)
		}
		k.exact = []string{string(decoded)}
	}
	return k, nil
}

// isEmpty reports whether the query names no key.
func (k *keyQuery) isEmpty() bool { return k.text == nil && k.exact == nil && k.parts == nil }

// keyIn returns the key in a zone.
func (k *keyQuery) keyIn(z *running.Zone) (string, error) {
	key, err := k.keyOf(z.Zone.Template)
	if err != nil {
		return "", adminError(badRequest, "zone %q: %w", z.Name, err)
	}
	return key, nil
}

// keyOf returns the key under a template. A key that no request can have is an error.
func (k *keyQuery) keyOf(template *key.Template) (string, error) {
	switch {
	case k.text != nil:
		return template.FromText(k.text[0])
	case k.exact != nil:
		return template.FromKey(k.exact[0])
	case k.isEmpty() && template.Varies():
		return "", fmt.Errorf("the key is missing: give %s", strings.Join(template.PartNames(), " "))
	}
	return template.FromValues(k.parts)
}
