package caddyratelimit

import (
	"cmp"
	"errors"
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

// defaultNearLimit is the near_limit of zones that give none, as in github.com/envoyproxy/ratelimit.
const defaultNearLimit = 80

// spec makes a Spec of the options, checked, without matchers and without what only a running config knows.
func (z *Zone) spec(name string, log *zap.Logger) (s zone.Spec, err error) {
	if name == "" {
		return s, errors.New("a zone needs a name")
	}
	z.fillIn()
	s = zone.Spec{
		Name: name, OnStoreError: z.OnStoreError, Key: z.Key,
		Limit: z.Limit, Plan: z.Plan, PlanLimits: z.Plan.Limits(&z.Limit), Lend: time.Duration(z.Lend), NearLimit: defaultNearLimit,
		Cost: *z.Cost, CostRequest: z.CostRequest, ChargeOnResponse: z.ChargeOnResponse,
		CostHeader: textproto.CanonicalMIMEHeaderKey(z.CostHeader), CostBrokenOff: z.CostBrokenOff, CostResponse: z.CostResponse,
		DryRun: z.DryRun, Enforce: z.Enforce,
		MissingKey: cmp.Or(z.MissingKey, zone.MissingShare), MissingKeyStatus: z.MissingKeyStatus,
		RepeatedValuesStatus: z.RepeatedValuesStatus, InvalidLimit: z.InvalidLimit, BlockStatus: z.BlockStatus,
	}
	if z.NearLimit != nil {
		s.NearLimit = *z.NearLimit
	}
	if z.Reserve != nil {
		s.Reserved = z.Reserve.Percent
	}
	if z.Overrides || z.Ban != nil {
		s.KeyRules = &store.KeyRules{Overrides: z.Overrides, Ban: z.Ban.rule()}
	}
	if s.Template, err = key.New(z.Key, z.IPv4Prefix, z.IPv6Prefix); err != nil {
		return s, err
	}
	z.readAs(s.Template)
	if z.Plan != nil && z.Plan.Of != "" {
		if s.PlanTemplate, err = key.NewText("plan", z.Plan.Of); err != nil {
			return s, err
		}
		z.readAs(s.PlanTemplate)
	}
	if s.Challenge = z.MissingKeyChallenge; s.Challenge == "" && s.MissingKey == zone.MissingReject && s.MissingKeyStatus == http.StatusUnauthorized {
		s.Challenge = defaultChallenge(s.Template)
	}
	return s, z.checkSpec(&s, log)
}

// fillIn fills in defaults.
func (z *Zone) fillIn() {
	z.MissingKeyStatus = cmp.Or(z.MissingKeyStatus, http.StatusUnauthorized)
	z.RepeatedValuesStatus = cmp.Or(z.RepeatedValuesStatus, http.StatusBadRequest)
	z.InvalidLimit = cmp.Or(z.InvalidLimit, http.StatusForbidden)
	z.BlockStatus = cmp.Or(z.BlockStatus, http.StatusForbidden)
	if z.Cost == nil {
		z.Cost = &limit.Amount{Number: 1}
	}
}

// readAs sets how a text with placeholders reads their values.
func (z *Zone) readAs(t *key.Template) {
	t.JoinsRepeated = z.RepeatedValues == repeatedJoin
	if !z.RawValues {
		t.Normalize()
	}
}

// check checks the options of a zone that is not provisioned.
func (z *Zone) check(name string) error {
	draft := *z
	s, err := draft.spec(name, zap.NewNop())
	if err == nil {
		_, err = zone.New(s, nil)
	}
	return err
}

// rule returns the ban as stores have it. It may be nil.
func (b *Ban) rule() *store.Ban {
	if b == nil {
		return nil
	}
	return &store.Ban{For: time.Duration(b.Duration), After: b.After, Within: time.Duration(b.Window), UpTo: time.Duration(b.UpTo)}
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
