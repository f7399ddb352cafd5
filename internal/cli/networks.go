package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// askLists asks each instance about a zone, or about all zones without a name.
func askLists[T any](f *fleet, zone, path string, query url.Values) []answer[[]T] {
	return ask(f, func(e *endpoint) (lists []T, text json.RawMessage, err error) {
		if zone == "" {
			text, err = e.fetch(http.MethodGet, path, query, nil, &lists)
			return lists, text, err
		}
		lists = make([]T, 1)
		text, err = e.fetch(http.MethodGet, zonePath(zone, "/"+path), query, nil, &lists[0])
		return lists, text, err
	})
}

// topNetworks prints the networks with the most requests, of a zone or of all zones.
func (f *fleet) topNetworks(zone string, n int) error {
	f.about = "" // each instance counts for itself
	answers := askLists[adminapi.Networks](f, zone, "networks", nil)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	rows := [][]string{f.row(caddyColumn, "ZONE", "REQUESTS", "REFUSED", "KEYS", "BEFORE", "NETWORK")}
	since := time.Now()
	for _, a := range good {
		for _, list := range a.value {
			if list.Since.Before(since) {
				since = list.Since
			}
			for _, c := range list.Networks[:min(n, len(list.Networks))] {
				before := "-"
				if c.Before != nil {
					before = formatCount(*c.Before, c.BeforeError)
				}
				rows = append(rows, f.row(a.of.address, shellWord(list.Zone), formatCount(c.Requests, c.Error), formatCount(c.Refused, c.Error),
					"about "+strconv.FormatUint(c.Keys, 10), before, c.Network))
			}
		}
	}
	if len(rows) == 1 {
		fmt.Fprintln(f.out, "No network has 1 % of the requests, or counting has just begun: ask again in a minute.")
		return err
	}
	err = errors.Join(f.table(rows), err)
	fmt.Fprintf(f.out, "\nCounted by %s since %s. KEYS may be wrong by a quarter; BEFORE is ten minutes before.\n", f.counter(len(good)), since.Local().Format(time.TimeOnly))
	return err
}
