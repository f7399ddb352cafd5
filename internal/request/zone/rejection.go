package zone

import "errors"

// Why a zone refuses a request without asking the store; or else a [*key.RepeatedError].
var (
	errBlocked = errors.New("the request is blocked")
	ErrNoKey   = errors.New("the request has no key")
	errNoPlan  = errors.New("the request has no plan")
	errInvalid = errors.New("the request has no valid limit")
)
