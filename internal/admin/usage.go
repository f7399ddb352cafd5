package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/sums"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// showUsage answers with a page of what the keys of a zone have used, by all instances that share its store. What this
// instance has gathered is sent before.
func showUsage(c *adminCall) error {
	if err := c.checkParameters(append([]string{"from", "to", "n", "cursor"}, keyParameters...)...); err != nil {
		return err
	}
	n, err := c.intParameter("n", 100, 1, 1000)
	if err != nil {
		return err
	}
	q, err := c.usageQuery()
	if err != nil {
		return err
	}
	session, err := c.zone.store.Begin()
	if err != nil {
		return c.zone.storeError(err)
	}
	defer session.End()
	keeper, ok := session.Store.Store.(store.UsageKeeper)
	if !ok {
		return adminError(http.StatusNotImplemented, "%s keeps no usage", pool.Describe(c.zone.store.Backend))
	}
	ctx, cancel := context.WithTimeout(c.request.Context(), adminTimeout)
	defer cancel()
	_ = session.Sums.Send(ctx) // what is not sent yet comes later, as that of other instances
	found, next, err := keeper.ReadUsage(ctx, q, c.query.Get("cursor"), int(n))
	if err != nil {
		return adminError(http.StatusServiceUnavailable, "reading usage from %s: %w", pool.Describe(c.zone.store.Backend), err)
	}
	answer := adminapi.UsagePage{Usage: make([]adminapi.Usage, len(found)), Next: next}
	for i := range found {
		answer.Usage[i] = c.zone.describeUsage(&found[i])
	}
	return c.writeJSON(answer)
}

// usageQuery reads which sums are wanted: by default those of all windows that are kept, and of the one that runs.
func (c *adminCall) usageQuery() (*store.UsageQuery, error) {
	z := c.zone
	if z.Usage == nil {
		return nil, adminError(http.StatusConflict, "zone %q sums no usage: give it the option usage, such as usage 1h", z.Name)
	}
	now := time.Now()
	from, err := c.timeParameter("from", now.Add(-time.Duration(z.Usage.Keep)*z.Usage.Length))
	if err != nil {
		return nil, err
	}
	to, err := c.timeParameter("to", now)
	if err != nil {
		return nil, err
	}
	oldest := now.Add(-time.Duration(z.Usage.Keep+1) * z.Usage.Length)
	if from.Before(oldest) {
		from = oldest
	}
	if end := now.Add(z.Usage.Length); to.After(end) { // another clock may be ahead
		to = end
	}
	q := &store.UsageQuery{Zone: z.Name, Length: z.Usage.Length, From: time.Unix(z.WindowOf(from).From, 0), To: to, Kind: store.UsageOfKey}
	named, err := c.readKeyQuery()
	if err != nil || named.isEmpty() {
		return q, err
	}
	key, err := named.keyIn(z)
	if err != nil {
		return nil, err
	}
	q.Kind, key = sums.KeyOf(key)
	q.Key = &key
	return q, nil
}

// timeParameter reads a parameter that is a time or a date.
func (c *adminCall) timeParameter(name string, usual time.Time) (time.Time, error) {
	text := c.query.Get(name)
	if text == "" {
		return usual, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return usual, adminError(badRequest, "%s must be a date such as 2026-12-01, or a time such as 2026-12-01T18:00:00Z, got %q", name, text)
}

func (z *runningZone) describeUsage(u *store.Usage) adminapi.Usage {
	a := adminapi.Usage{
		Zone: u.Zone, From: u.From.UTC(), To: u.From.UTC().Add(u.Length), KeyText: adminapi.NewKeyText(u.Key, len(u.Key)),
		Requests: u.Requests, Cost: u.Cost, Refused: u.Refused,
	}
	switch u.Kind {
	case store.UsageOfHash:
		a.Kind = adminapi.UsageHashed
	case store.UsageOfRest:
		a.Kind = adminapi.UsageRest
	default:
		a.KeyText = keyText(z.Template, u.Key, len(u.Key))
	}
	return a
}
