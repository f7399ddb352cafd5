package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// bannedNetwork is a network of a zone with several banned keys, as all instances see it that were asked.
type bannedNetwork struct {
	zone      string
	instances int // that share the store
	asked     int
	adminapi.BannedNetwork
}

// bannedNetworks prints the networks of which several keys are banned, of a zone or of all zones whose keys are addresses.
func (f *fleet) bannedNetworks(zone string, least int) error {
	f.about = "" // each instance answers for itself
	answers := fetchLists[adminapi.BannedNetworks](f, zone, "bans/networks", url.Values{"least": {strconv.Itoa(least)}})
	good, err := answered(f, answers)
	if f.json || good == nil {
		return errors.Join(printAnswers(f, answers), err)
	}
	var found []*bannedNetwork
	incomplete := false
	for _, a := range good {
		for _, list := range a.value {
			incomplete = incomplete || list.Incomplete
			for _, n := range list.Networks {
				i := slices.IndexFunc(found, func(known *bannedNetwork) bool { return known.zone == list.Zone && known.Network == n.Network })
				if i < 0 {
					found = append(found, &bannedNetwork{list.Zone, list.Instances, 1, n})
					continue
				}
				found[i].add(list.Instances, &n)
			}
		}
	}
	if len(found) == 0 {
		fmt.Fprintf(f.out, "No network has %d banned keys.\n", least)
		return err
	}
	rows := [][]string{{"ZONE", "BANNED", "OTHERS PASS", "NETWORK", "A BAN OF IT"}}
	for _, n := range found {
		rows = append(rows, []string{shellWord(n.zone), strconv.Itoa(n.Banned), n.passing(), n.Network, n.advice()})
	}
	err = errors.Join(f.table(rows), err)
	if incomplete {
		fmt.Fprintln(f.out, "\nThere are more bans than were looked at.")
	}
	return err
}

// add adds what another instance knows of the network.
func (n *bannedNetwork) add(instances int, other *adminapi.BannedNetwork) {
	n.instances, n.asked = max(n.instances, instances), n.asked+1
	n.Banned, n.Innocent, n.AtLeast = max(n.Banned, other.Banned), n.Innocent+other.Innocent, n.AtLeast || other.AtLeast
	n.Against = cmp.Or(n.Against, other.Against)
	if other.Since.After(n.Since) {
		n.Since = other.Since
	}
}

// passing says how many other keys of the network pass, and since when they were counted.
func (n *bannedNetwork) passing() string {
	text := strconv.Itoa(n.Innocent)
	if n.AtLeast {
		text += " or more"
	}
	return text + " since " + n.Since.Local().Format(time.TimeOnly)
}

// advice returns the command that bans the network, or what speaks against that.
func (n *bannedNetwork) advice() string {
	switch {
	case n.Against != "":
		return "no: " + n.Against
	case n.asked < n.instances:
		return fmt.Sprintf("no: %d of %d instances were asked: give --address all of them", n.asked, n.instances)
	}
	text := "caddy rate-limit ban " + shellWord(n.zone) + " " + n.Network
	if n.For > 0 {
		text += " --for " + duration.Format(time.Duration(n.For*float64(time.Second)))
	}
	return text + fmt.Sprintf(" --note '%d of its keys were banned'", n.Banned)
}
