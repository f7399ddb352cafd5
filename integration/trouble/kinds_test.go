package trouble_test

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// limit is what a client of a zone may use. Two, three or four instances can share it.
	limit = 24

	// overridden is the limit of a client that has an override.
	overridden = 40

	// window is longer than any test, so nothing comes back in time.
	window = `"window": "1000h"`
)

// kind is a kind of zone.
type kind struct {
	name, json string // json is without on_store_error
	limit      int64  // what a client may use, and what the share of an instance is
	share      int64
	quotas     [2]int64 // what RateLimit-Policy says of the limit and of the share
	cost       int64    // what a request costs when it comes
	first      int64    // what the client has used before the fault that has used something

	fixed     bool // the state of a key keeps its size
	lends     bool
	slots     bool
	special   string // "ban", "override", "late" or "refund"
	tolerance int64  // of what is charged after a refund: a part of an event may have come back before
}

// forms are the algorithms, in all forms in which they decide differently.
var forms = []kind{
	{name: "token_bucket", json: `"algorithm": "token_bucket", ` + window, fixed: true, tolerance: 1},
	{name: "leaky_bucket", json: `"algorithm": "leaky_bucket", ` + window, fixed: true, tolerance: 1},
	{name: "queue", json: `"algorithm": "leaky_bucket", "mode": "queue", "max_wait": "1ms", ` + window, fixed: true, limit: 1, share: 1},
	{name: "fixed_window", json: `"algorithm": "fixed_window", ` + window, fixed: true},
	{name: "calendar", json: `"algorithm": "fixed_window", "window": "year"`, fixed: true},
	{name: "sliding_window_counter", json: `"algorithm": "sliding_window_counter", ` + window, fixed: true},
	{name: "sliding_window_log", json: `"algorithm": "sliding_window_log", ` + window},
	{name: "concurrency", json: `"algorithm": "concurrency", "lease": "1h"`, slots: true},
}

// kinds are all kinds of zones in a fleet of two.
var kinds = kindsOf(pair)

// kindsOf returns all kinds of zones: each form, plain and lent, with each option that it can have. A client gets
// its share from each of the instances.
func kindsOf(instances int64) (all []kind) {
	share := limit / instances
	for _, f := range forms {
		f.json = fmt.Sprintf(`"key": "{http.request.header.Client}", "max_events": %d, `, limit) + f.json
		f.cost, f.first, f.quotas = 1, 10, [2]int64{limit, share}
		if f.limit == 0 {
			f.limit, f.share = limit, share
		} else {
			f.first = 0
		}
		all = append(all, f)
		if f.name == "concurrency" || f.name == "queue" {
			continue
		}
		all = append(all, f.with("lent", `"lend": "10s"`))
		for _, special := range []string{"early", "late", "refund"} {
			json := map[string]string{
				"early":  `"cost": "{http.request.header.Cost} 3"`,
				"late":   `"cost_header": "X-Cost"`,
				"refund": `"charge_on_response": {"status_code": [2]}`,
			}[special]
			all = append(all, f.with(special, json), f.with(special+" lent", json+`, "lend": "10s"`))
		}
		all = append(all, f.with("override", `"overrides": true`),
			f.with("ban", `"cost": "{http.request.header.Cost} 1", "ban": {"duration": "1h", "after": 3, "window": "1h"}`))
	}
	return all
}

// with returns the kind with an option.
func (k kind) with(option, json string) kind {
	k.name += " " + option
	k.json += ", " + json
	for _, word := range strings.Fields(option) {
		switch word {
		case "lent":
			k.lends = true
		case "early":
			k.cost, k.limit, k.share, k.first, k.quotas = 3, 3*limit, 3*k.share, 27, [2]int64{3 * limit, 3 * k.share}
			k.json = strings.Replace(k.json, fmt.Sprintf(`"max_events": %d`, limit), fmt.Sprintf(`"max_events": %d`, k.limit), 1)
		default:
			k.special = word
		}
	}
	return k
}

// clients are what has happened to the clients of a zone before the fault.
func (k *kind) clients() []string {
	all := []string{"fresh", "used up"}
	if k.first > 0 {
		all = append(all, "known")
	}
	switch k.special {
	case "late", "refund":
		all = append(all, "pending")
	case "override":
		all = append(all, "overridden", "exempt", "barred")
	case "ban":
		all = append(all, "banned")
	}
	return all
}

// allowed is what a client may use of a zone.
func (k *kind) allowed(client string) int64 {
	switch client {
	case "overridden":
		return overridden
	case "banned":
		return 1
	case "barred":
		return 0
	}
	return k.limit
}

// counted reports whether the requests of a client are counted at all.
func counted(client string) bool { return !slices.Contains([]string{"exempt", "barred"}, client) }
