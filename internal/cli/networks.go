package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

// fetchNetworks gets the networks of each instance, of a zone or of all zones without a name.
func (f *fleet) fetchNetworks(zone string) (lists []answer[[]adminapi.Networks]) {
	if zone == "" {
		return fetchAll[[]adminapi.Networks](f, "networks", nil)
	}
	for _, a := range fetchAll[adminapi.Networks](f, zonePath(zone, "/networks"), nil) {
		lists = append(lists, answer[[]adminapi.Networks]{a.of, []adminapi.Networks{a.value}, a.text, a.err})
	}
	return lists
}

// topNetworks prints the networks with the most requests, of a zone or of all zones.
func (f *fleet) topNetworks(zone string, n int) error {
	answers := f.fetchNetworks(zone)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	row, by := f.row, f.counter(len(good))
	if f.view != nil && !f.isOne() {
		row = func(_ string, cells ...string) []string { return cells }
		good = []answer[[]adminapi.Networks]{{of: f.asked, value: f.view.Networks}}
	}
	rows := [][]string{row(caddyColumn, "ZONE", "REQUESTS", "REFUSED", "KEYS", "BEFORE", "NETWORK")}
	since, nowhere, unlisted := time.Now(), true, uint64(0)
	for _, a := range good {
		for _, list := range a.value {
			nowhere, unlisted = false, max(unlisted, list.Unlisted)
			if list.Since.Before(since) {
				since = list.Since
			}
			for _, c := range list.Networks[:min(n, len(list.Networks))] {
				before := "-"
				if c.Before != nil {
					before = formatCount(*c.Before, c.BeforeError)
				}
				rows = append(rows, row(a.of.address, shell.Word(list.Zone), formatCount(c.Requests, c.Error), formatCount(c.Refused, c.Error),
					"about "+formatCount(c.Keys, max(c.Keys, c.KeysMost)-c.Keys), before, c.Network))
			}
		}
	}
	switch {
	case nowhere:
		fmt.Fprintln(f.out, "No zone has an address in its key.")
		return err
	case len(rows) == 1:
		fmt.Fprintln(f.out, "No network has 1 % of the requests, or counting has just begun: ask again in a minute.")
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
