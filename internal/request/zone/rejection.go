package zone

import "errors"

// Why a zone refuses a request without asking the store; or else a [*key.RepeatedError].
var (
	errBlocked = errors.New("the request is blocked")
	errNoKey   = errors.New("the request has no key")
	errNoPlan  = errors.New("the request has no plan")
	errInvalid = errors.New("the request has no valid limit")
)

// ChallengeFor returns the challenge for a client whose request was rejected; "" if there is none.
func (z *Zone) ChallengeFor(why error) string {
	if why == errNoKey {
		return z.challenge
	}
	return ""
}
