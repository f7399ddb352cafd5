package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// Reject is the word for requests that are refused because something is missing. A status may follow it.
const Reject = "reject"

// Otherwise is what happens to requests that lack a key or a plan: a word, or `reject` with a status from 400 to 599, as in
// `"reject 403"`.
type Otherwise struct {
	// The word, which is `reject` for a refusal.
	Word string

	// The status of a refusal, if it is given.
	Status int
}

// Parse implements [option.Value].
func (o *Otherwise) Parse(args []string, of *option.Field) (err error) {
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && args[0] != Reject || args[0] == "" {
		return option.ErrWrong
	}
	*o = Otherwise{Word: args[0]}
	if len(args) == 2 {
		if o.Status, err = strconv.Atoi(args[1]); err != nil || o.Status < 400 || o.Status > 599 {
			return errors.New("a status is from 400 to 599")
		}
	}
	return of.Among(o.Word)
}

// String returns it as a Caddyfile has it.
func (o Otherwise) String() string {
	if o.Status != 0 {
		return fmt.Sprintf("%s %d", o.Word, o.Status)
	}
	return o.Word
}

// Full returns it as a Caddyfile has it, with the status of a refusal, which is usual if none is given.
func (o Otherwise) Full(usual int) string {
	if o.Word == Reject {
		o.Status = cmp.Or(o.Status, usual)
	}
	return o.String()
}

// MarshalJSON implements [json.Marshaler].
func (o Otherwise) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }
