package cli

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// fetchLists gets the lists of each instance, of a zone or of all zones without a name.
func fetchLists[T any](f *fleet, zone, path string, query url.Values) (lists []answer[[]T]) {
	if zone == "" {
		return fetchAll[[]T](f, path, query)
	}
	for _, a := range fetchAll[T](f, zonePath(zone, "/"+path), query) {
		lists = append(lists, answer[[]T]{a.of, []T{a.value}, a.text, a.err})
	}
	return lists
}

// heavyKind is a kind of sets of keys that may have many requests.
type heavyKind[T any] struct {
	path, column string
	none         string // what is said if none has many requests
	nowhere      string // what is said if no zone has such sets
	read         func(T) (adminapi.HeavyList, []heavySet)
	sums         func(*adminapi.FleetAnswer) []T // of all instances
}

// heavySet is a set with many requests.
type heavySet struct {
	shown string
	adminapi.HeavyCount
}

var heavyNetworks = heavyKind[adminapi.Networks]{
	path: "networks", column: "NETWORK", none: "No network has 1 % of the requests", nowhere: "No zone has an address in its key.",
	read: func(list adminapi.Networks) (adminapi.HeavyList, []heavySet) {
		sets := make([]heavySet, len(list.Networks))
		for i, c := range list.Networks {
			sets[i] = heavySet{c.Network, c.HeavyCount}
		}
		return list.HeavyList, sets
	},
	sums: func(a *adminapi.FleetAnswer) []adminapi.Networks { return a.Networks },
}

var heavyGroups = heavyKind[adminapi.Groups]{
	path: "groups", column: "GROUP", none: "No group has 1 % of the requests", nowhere: "No zone has the option group.",
	read: func(list adminapi.Groups) (adminapi.HeavyList, []heavySet) {
		sets := make([]heavySet, len(list.Groups))
		for i, c := range list.Groups {
			sets[i] = heavySet{showGroup(&c), c.HeavyCount}
		}
		return list.HeavyList, sets
	},
	sums: func(a *adminapi.FleetAnswer) []adminapi.Groups { return a.Groups },
}

// showGroup returns a group for a table.
func showGroup(c *adminapi.GroupCount) string {
	value, err := c.Text().Bytes()
	switch {
	case err != nil:
		return "?"
	case value == "":
		return "(none)" // the value that has this text is in quotes
	case c.Truncated > 0:
		return fmt.Sprintf("%s... (%d bytes)", shellWord(value), c.Truncated)
	}
	return shellWord(value)
}

// topHeavy prints the sets of a kind with the most requests, of a zone or of all zones.
func topHeavy[T any](f *fleet, kind *heavyKind[T], zone string, n int) error {
	answers := fetchLists[T](f, zone, kind.path, nil)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	row, by := f.row, f.counter(len(good))
	if f.view != nil && !f.isOne() {
		row = func(_ string, cells ...string) []string { return cells }
		good = []answer[[]T]{{of: f.asked, value: kind.sums(f.view)}}
	}
	rows := [][]string{row(caddyColumn, "ZONE", "REQUESTS", "REFUSED", "KEYS", "BEFORE", kind.column)}
	since, nowhere, unlisted := time.Now(), true, uint64(0)
	for _, a := range good {
		for _, list := range a.value {
			of, sets := kind.read(list)
			nowhere, unlisted = false, max(unlisted, of.Unlisted)
			if of.Since.Before(since) {
				since = of.Since
			}
			for _, c := range sets[:min(n, len(sets))] {
				before := "-"
				if c.Before != nil {
					before = formatCount(*c.Before, c.BeforeError)
				}
				rows = append(rows, row(a.of.address, shellWord(of.Zone), formatCount(c.Requests, c.Error), formatCount(c.Refused, c.Error),
					"about "+formatCount(c.Keys, max(c.Keys, c.KeysMost)-c.Keys), before, c.shown))
			}
		}
	}
	switch {
	case nowhere:
		fmt.Fprintln(f.out, kind.nowhere)
		return err
	case len(rows) == 1:
		fmt.Fprintf(f.out, "%s, or counting has just begun: ask again in a minute.\n", kind.none)
		return err
	}
	err = errors.Join(f.table(rows), err)
	fmt.Fprintf(f.out, "\nCounted by %s since %s. KEYS may be wrong by a quarter; BEFORE is ten minutes before.\n", by, since.Local().Format(time.TimeOnly))
	if unlisted > 0 {
		f.say("What is not listed may have up to %d requests.", unlisted)
	}
	f.printView()
	return err
}
