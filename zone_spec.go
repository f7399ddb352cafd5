package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// spec makes a Spec of the options, checked, without matchers and without what only a running config knows.
func (z *Zone) spec(name string, log *zap.Logger) (s zone.Spec, err error) {
	if name == "" {
		return s, errors.New("a zone needs a name")
	}
	z.fillIn()
	s = zone.Spec{
		Name: name, OnStoreError: z.OnStoreError, Key: z.Key,
		Limit: z.Limit, Plan: z.Plan, PlanLimits: z.Plan.Limits(&z.Limit), Lend: z.lend(),
		Cost: *z.Cost, CostRequest: z.CostRequest, ChargeOnResponse: z.ChargeOnResponse,
		CostHeader: textproto.CanonicalMIMEHeaderKey(z.CostHeader), CostBrokenOff: z.CostBrokenOff, CostResponse: z.CostResponse,
		DryRun: z.DryRun, Enforce: z.Enforce,
		MissingKey: cmp.Or(z.MissingKey, zone.MissingShare), MissingKeyStatus: z.MissingKeyStatus,
		InvalidLimit: z.InvalidLimit, BlockStatus: z.BlockStatus,
	}
	if s.Hidden, err = z.hidden(); err != nil {
		return s, err
	}
	if z.Overrides || z.Ban != nil {
		s.KeyRules = &store.KeyRules{Overrides: z.Overrides, Ban: z.Ban.rule()}
	}
	if s.Template, err = key.New(z.Key, z.IPv4Prefix, z.IPv6Prefix); err != nil {
		return s, err
	}
	s.Template.Normalize()
	if z.Plan != nil && z.Plan.Of != "" {
		if s.PlanTemplate, err = key.NewText("plan", z.Plan.Of); err != nil {
			return s, err
		}
		s.PlanTemplate.Normalize()
	}
	if s.Challenge = z.MissingKeyChallenge; s.Challenge == "" && s.MissingKey == zone.MissingReject && s.MissingKeyStatus == http.StatusUnauthorized {
		s.Challenge = defaultChallenge(s.Template)
	}
	return s, z.checkSpec(&s, log)
}

// fillIn fills in defaults.
func (z *Zone) fillIn() {
	z.MissingKeyStatus = cmp.Or(z.MissingKeyStatus, http.StatusUnauthorized)
	z.InvalidLimit = cmp.Or(z.InvalidLimit, http.StatusForbidden)
	z.BlockStatus = cmp.Or(z.BlockStatus, http.StatusForbidden)
	if z.Cost == nil {
		z.Cost = &limit.Amount{Number: 1}
	}
}

// hidden reports whether no header tells clients about the zone.
func (z *Zone) hidden() (bool, error) {
	shown := z.Headers
	if err := oneOf("headers", &shown, "on", "off"); err != nil {
		return false, fmt.Errorf("%w: styles belong in rate_limit, outside of its zones", err)
	}
	return shown == "off", nil
}

// check checks the options of a zone that is not provisioned. It checks a copy, because a check fills in defaults.
func (z *Zone) check(name string) error {
	text, err := json.Marshal(z)
	if err != nil {
		return err
	}
	draft := new(Zone)
	if err := json.Unmarshal(text, draft); err != nil {
		return err
	}
	s, err := draft.spec(name, zap.NewNop())
	if err == nil {
		_, err = zone.New(s, nil)
	}
	return err
}

// defaultChallenge returns a challenge for the place where a client must send its key: that of Bearer
// for the field Authorization, and one that just names the place for others, for which there is no
// standard. It is empty if clients do not send the key as it is.
func defaultChallenge(k *key.Template) string {
	sources, _ := k.Sources()
	if len(sources) == 0 {
		return ""
	}
	if sources[0] == (key.Source{In: key.Header, Name: "Authorization"}) {
		return `Bearer realm="restricted"`
	}
	name := strconv.QuoteToASCII(sources[0].Name)
	return "ApiKey in=" + sources[0].In + ", name=" + name
}

// lend returns for how long units may be held: 0 if none may.
func (z *Zone) lend() time.Duration {
	switch {
	case z.Lend == nil:
		return 0
	case *z.Lend == 0:
		return zone.SuitableLend
	}
	return time.Duration(*z.Lend)
}
