package admin

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// resetKey forgets what a key has used under all limits of the zone that this Caddy knows
// of, also what it has counted in place of the store. There may be others where the limits
// come out of placeholders: the store names a state by its limit, and looking for the states
// of one key would be a look at all keys.
func resetKey(c *adminCall) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	z := c.zone
	reset := func(ctx context.Context, s store.Store) error {
		for _, rule := range z.States() {
			if err := s.Reset(ctx, rule, key); err != nil {
				return err
			}
		}
		return nil
	}
	if z.local != nil {
		if err := using(z.local, c, reset); err != nil {
			return err
		}
	}
	if err := using(z.kept, c, reset); err != nil || !z.HasUnknownStates() {
		return c.done(err)
	}
	return c.answer(adminapi.Reset{Warning: fmt.Sprintf("the limits of zone %q come out of placeholders, and those that count apart have counters of their own: "+
		"this one has reset the limits that requests have lately brought to this Caddy, since its config was loaded; "+
		"if the key is still refused, reset it again after its next request to this Caddy", z.Name)})
}

// done answers that something was done with a key, or that the store did not answer.
func (c *adminCall) done(err error) error {
	if err != nil {
		return c.zone.unanswered(err)
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// adminTimeout bounds what a store may take for the admin API, beside its own timeout.
const adminTimeout = 10 * time.Second

// using has something done with the store.
func using(l *pool.Ref, c *adminCall, do func(context.Context, store.Store) error) error {
	u, err := l.Begin()
	if err != nil {
		return err
	}
	defer u.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), adminTimeout)
	defer cancel()
	return do(ctx, u.Store.Store)
}

// unanswered says that the store did not answer, and what that means.
func (z *runningZone) unanswered(err error) error {
	means := map[string]string{
		zone.AllowOnError: "the zone lets all requests pass", zone.DenyOnError: "the zone answers 503 to all requests",
		zone.LocalOnError: "each Caddy counts for itself",
	}[z.OnStoreError]
	return adminError(http.StatusServiceUnavailable, "%s does not answer: %w; meanwhile %s (on_store_error %s)",
		pool.Describe(z.kept.Backend), err, means, z.OnStoreError)
}

// keyParameters are those that say which key is meant.
var keyParameters = []string{"key", "key_base64", "part"}

// key reads the key of a route that takes those parameters, and perhaps more.
func (c *adminCall) key(more ...string) (string, error) {
	if err := c.known(append(more, keyParameters...)...); err != nil {
		return "", err
	}
	asked, err := c.askedKey()
	if err != nil {
		return "", err
	}
	return asked.of(c.zone)
}

// askedKey is which key a query means: the key as a request would bring it, the key to
// the byte, the values of the placeholders that a zone makes keys of, or none of these.
type askedKey struct {
	text, exact *string
	parts       []string
}

func (c *adminCall) askedKey() (k askedKey, err error) {
	if len(c.query["key"])+len(c.query["key_base64"])+min(1, len(c.query["part"])) > 1 {
		return k, adminError(badRequest, "say once which key: key, key_base64 or part")
	}
	k.parts = c.query["part"]
	if c.query.Has("key") {
		text := c.query.Get("key")
		k.text = &text
	}
	if c.query.Has("key_base64") {
		b, err := base64.StdEncoding.DecodeString(c.query.Get("key_base64"))
		if err != nil {
			return k, adminError(badRequest, "key_base64: %w; percent-encode + / and =", err)
		}
		text := string(b)
		k.exact = &text
	}
	return k, nil
}

// none says that the query means no key in particular.
func (k *askedKey) none() bool { return k.text == nil && k.exact == nil && k.parts == nil }

// of is the key in a zone.
func (k *askedKey) of(z *runningZone) (string, error) {
	template := z.Zone.Template
	switch {
	case k.text != nil:
		return template.FromText(*k.text), nil
	case k.exact != nil:
		return *k.exact, nil
	case k.none() && template.Varies():
		return "", adminError(badRequest, "say which key of zone %q, whose key is %q: ?key=..., percent-encoded, or ?key_base64=..., or ?part=... for each placeholder",
			z.Name, z.Key)
	}
	key, err := template.FromValues(k.parts)
	if err != nil {
		return "", adminError(badRequest, "zone %q, key %q: %w", z.Name, z.Key, err)
	}
	return key, nil
}

// anywhere is the key in a zone that was not named: it must be clear what it stands for.
// A zone without a key is everybody's, and so is its limit.
func (k *askedKey) anywhere(z *runningZone) (string, error) {
	if template := z.Zone.Template; !template.Varies() {
		return template.FromValues(nil)
	} else if n := template.NumPlaceholders(); n != max(1, len(k.parts)) {
		return "", fmt.Errorf("the key is made of %d placeholders, %s: ask this zone alone, with the value of each", n, z.Key)
	}
	return k.of(z)
}
