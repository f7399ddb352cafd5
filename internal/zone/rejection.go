package zone

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
)

// Why a zone refuses a request without asking the store; or else a [*key.RepeatedError].
var (
	errBlocked = errors.New("the request is blocked")
	errNoKey   = errors.New("the request has no key")
	errNoPlan  = errors.New("the request has no plan")
	errInvalid = errors.New("the request has no valid limit")
)

// DescribeRejections prepares what rejected clients are told. It does not depend on their requests.
func (z *Zone) DescribeRejections() {
	z.noKey, z.noPlan = errNoKey.Error(), errNoPlan.Error()
	if sources, all := z.Template.Sources(); all {
		z.noKey = missing(sources)
	} else if z.Template.Uses("http.auth.user.id") {
		z.noKey = "the request is not authenticated"
	}
	if z.PlanTemplate == nil {
		return
	}
	if sources, all := z.PlanTemplate.Sources(); all {
		z.noPlan = join(sources) + " names no plan"
		if len(sources) > 1 {
			z.noPlan = join(sources) + " name no plan"
		}
	}
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
		return z.Challenge
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
func join(sources []key.Source) string {
	var b strings.Builder
	for i, s := range sources {
		switch {
		case i > 0 && i == len(sources)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(s.String())
	}
	return b.String()
}

// CheckChallenge checks the challenge of missing_key, and chooses one if there is none.
func (z *Zone) CheckChallenge(challenge string) error {
	switch {
	case challenge == "" && z.MissingKey == MissingReject && z.MissingKeyStatus == http.StatusUnauthorized:
		z.Challenge = defaultChallenge(z.Template)
		return nil
	case challenge == "":
		return nil
	case z.MissingKey != MissingReject:
		return errors.New("missing_key_challenge needs missing_key reject")
	case z.MissingKeyStatus != http.StatusUnauthorized:
		return fmt.Errorf("missing_key_challenge is for status 401, got %d", z.MissingKeyStatus)
	case strings.ContainsFunc(challenge, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf("missing_key_challenge must be printable ASCII on one line, got %q", challenge)
	}
	if scheme, _, _ := strings.Cut(challenge, " "); scheme == "" || strings.ContainsAny(scheme, `"=,;()<>@:\/[]?{}`) {
		return fmt.Errorf("missing_key_challenge must begin with the name of a scheme, such as Bearer realm=\"api\", got %q", challenge)
	}
	z.Challenge = challenge
	return nil
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
