package caddyratelimit

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

var errBlocked = errors.New("the request is blocked")

// matchesAny tells whether a matcher set matches. Of none, none does.
func matchesAny(sets caddyhttp.MatcherSets, r *http.Request) (bool, error) {
	if len(sets) == 0 {
		return false, nil
	}
	return sets.AnyMatchWithError(r)
}
