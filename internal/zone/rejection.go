package zone

import (
	"errors"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
)

// Why a zone refuses a request without asking the store; or else a [*key.RepeatedError].
var (
	errBlocked = errors.New("the request is blocked")
	errNoKey   = errors.New("the request has no key")
	errNoPlan  = errors.New("the request has no plan")
	errInvalid = errors.New("the request has no valid limit")
)

// describeRejections returns what clients without a key or a plan are told. It does not depend on their requests.
func (z *Zone) describeRejections() (noKey, noPlan string) {
	noKey, noPlan = errNoKey.Error(), errNoPlan.Error()
	if sources, all := z.Template.Sources(); all {
		noKey = missing(sources)
	} else if z.Template.Uses("http.auth.user.id") {
		noKey = "the request is not authenticated"
	}
	if z.PlanTemplate == nil {
		return noKey, noPlan
	}
	if sources, all := z.PlanTemplate.Sources(); all && len(sources) > 1 {
		noPlan = join(sources) + " name no plan"
	} else if all {
		noPlan = join(sources) + " names no plan"
	}
	return noKey, noPlan
}

// KeyInWords says where clients send the key, "cookie sid", or else it is the key in the config.
func (z *Zone) KeyInWords() string {
	if sources, all := z.Template.Sources(); all {
		return join(sources)
	}
	return z.Key
}

// Detail says to the client why its request was rejected.
func (z *Zone) Detail(why error) string {
	if repeated, ok := errors.AsType[*key.RepeatedError](why); ok {
		return repeated.Detail()
	}
	switch why {
	case errNoKey:
		return z.noKey
	case errNoPlan:
		return z.noPlan
	}
	return why.Error()
}

// ChallengeFor returns the challenge for a client whose request was rejected; "" if there is none.
func (z *Zone) ChallengeFor(why error) string {
	if why == errNoKey {
		return z.challenge
	}
	return ""
}

// missing says what is missing. A key is missing only if all of its parts are.
func missing(sources []key.Source) string {
	if len(sources) == 1 {
		return sources[0].String() + " is missing"
	}
	return join(sources) + " are missing"
}

// join returns places in words: a, b and c.
func join(sources []key.Source) (text string) {
	for i, s := range sources {
		switch {
		case i > 0 && i == len(sources)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += s.String()
	}
	return text
}
