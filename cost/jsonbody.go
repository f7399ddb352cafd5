package cost

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/body"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// JSONBody counts the calls in JSON bodies: an object is one call, and an array of objects, such as a batch of JSON-RPC, has a
// call for each. The body is read before the request is decided, and reaches the upstream unchanged. A request costs as
// much as all of its calls that match. They must have the same key, or the request is refused with status 400.
type JSONBody struct {
	// Which calls the zone counts: those that have one of the values at each of these paths. A path is names with dots between, such as
	// `params.name`. The value of a field that is not there or `null` is empty. A request without such a call is not counted.
	// Default: all calls.
	Match map[string][]string `json:"match,omitempty"`

	// How many requests one request counts for, from 1 to 1000000000000, if its body cannot be read. In the key, fields
	// then have the value `(unreadable)`. Such a body is larger than max_body, is not JSON in UTF-8, has a
	// Content-Encoding or another `charset`, more than 1000 calls, or fields that upstreams may read in several ways. Default: such requests
	// are refused.
	Unreadable *int64 `json:"unreadable,omitempty"`

	// The status with which requests whose body cannot be read are refused, from 400 to 599. Default: 413
	// if it is too large, 415 if it has a Content-Encoding or a `charset` other than UTF-8, and 400 otherwise.
	UnreadableStatus int `json:"unreadable_status,omitempty"`

	// How many bytes of the body are read at most, from 1 to 67108864. They are kept in memory until the
	// upstream has them, of all requests at most 268435456. Default: 1048576.
	MaxBody int64 `json:"max_body,omitempty"`

	// How long the body may take, from 100ms to 1h. A request whose body takes longer is refused with status
	// 408. Default: 10s.
	Within caddy.Duration `json:"within,omitempty"`

	texts *usage.Texts
	match []condition
}

// condition is that a field has one of some values.
type condition struct {
	path   string
	values []string
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *JSONBody) UnmarshalJSON(text []byte) error {
	type alias JSONBody
	return option.JSON(text, (*alias)(b), nil)
}

// Compile checks the options, and fills in defaults. The paths are those of fields that the key has.
func (b *JSONBody) Compile(paths []string) (err error) {
	paths, b.match = slices.Clone(paths), nil
	for _, path := range slices.Sorted(maps.Keys(b.Match)) {
		if len(b.Match[path]) == 0 {
			return fmt.Errorf("json_body match %s needs a value, such as tools/call", path)
		}
		for _, value := range b.Match[path] {
			if len(value) > usage.MaxText {
				return fmt.Errorf("json_body match %s: a value has at most %d bytes, got %d", path, usage.MaxText, len(value))
			}
		}
		b.match, paths = append(b.match, condition{path, b.Match[path]}), append(paths, path)
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) == 0 {
		return errors.New("json_body has nothing to read: write match, or a field of the body in the key")
	}
	if b.texts, err = usage.ParseTexts(paths); err != nil {
		return fmt.Errorf("json_body: %w", err)
	}
	if err := checkUnreadable("json_body", b.Unreadable, 1, b.UnreadableStatus); err != nil {
		return err
	}
	return checkReading("json_body", &b.MaxBody, &b.Within)
}

// Read returns the calls in the body of a request. If the body cannot be read, there are none, and the request is refused or
// counts for a number of calls.
func (b *JSONBody) Read(r *http.Request) (calls *usage.Calls, counts int64, refusal *body.Refusal) {
	_, text, refusal := body.ReadJSON(r, b.MaxBody, time.Duration(b.Within))
	if refusal == nil {
		var err error
		if calls, err = b.texts.Read(text); err == nil {
			return calls, 0, nil
		}
		refusal = &body.Refusal{Status: http.StatusBadRequest, Err: err}
	}
	if price := refuse("json_body", refusal, b.Unreadable, b.UnreadableStatus); price != nil {
		return nil, *price, nil
	}
	return nil, 0, refusal
}

// Matches reports whether a call is one that counts.
func (b *JSONBody) Matches(calls *usage.Calls, call int) bool {
	for i := range b.match {
		if !slices.Contains(b.match[i].values, calls.Text(call, b.match[i].path)) {
			return false
		}
	}
	return true
}

// String returns which calls match, as in a Caddyfile.
func (b *JSONBody) String() string {
	text := "json_body"
	for i, c := range b.match {
		text += map[bool]string{true: " match ", false: ", "}[i == 0] + c.path + " " + strings.Join(c.values, " ")
	}
	return text
}

// ParseJSONBody parses
//
//	json_body [match <path> <value>...] {
//	    match      <path> <value>...
//	    unreadable <calls> | reject [<status>]
//	    max_body   <size>
//	    within     <duration>
//	}
func ParseJSONBody(d *caddyfile.Dispenser) (*JSONBody, error) {
	b := &JSONBody{Match: make(map[string][]string)}
	if d.NextArg() {
		if d.Val() != "match" {
			return nil, d.Errf("json_body takes match <path> <value>..., got '%s'", d.Val())
		}
		if _, err := b.parseMatch(d); err != nil {
			return nil, err
		}
	}
	return b, option.Block(d, "json_body", "json_body ", map[string]option.Option{
		"match": {Repeats: true, Parse: func() (string, error) { return b.parseMatch(d) }},
		"unreadable": {Parse: func() (string, error) {
			return parseUnreadable(d, "json_body", &b.Unreadable, &b.UnreadableStatus)
		}},
		"max_body": {Parse: option.Parsed(d, &b.MaxBody, size("json_body"))},
		"within":   {Parse: option.Duration(d, "json_body within", &b.Within)},
	})
}

// parseMatch parses <path> <value>...
func (b *JSONBody) parseMatch(d *caddyfile.Dispenser) (string, error) {
	args := d.RemainingArgs()
	switch {
	case len(args) < 2:
		return "", d.ArgErr()
	case b.Match[args[0]] != nil:
		return "", d.Errf("json_body match %s already specified: write all of its values in one line", args[0])
	}
	b.Match[args[0]] = args[1:]
	return "", nil
}
