package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// maxClientDiffs is how many clients are listed.
const maxClientDiffs = 20

// Configs says what differs between two configs, neither of which runs, and for which clients of some logs. Without
// logs the options may be nil.
func Configs(before, after []byte, o *replay.Options) (*adminapi.Comparison, error) {
	configs, zones, stores := [][]byte{before, after}, make([]map[string]Zone, 2), make([][]string, 2)
	for i, config := range configs {
		alone, err := offline.Provision(config)
		if err != nil {
			return nil, fmt.Errorf("%s config: %w", [...]string{"old", "new"}[i], err)
		}
		defer alone.Release()
		zones[i], stores[i] = ZonesOf(alone.Handlers), storesIn(alone.Stores)
	}
	c := &adminapi.Comparison{Zones: append([]adminapi.ZoneDiff{}, Zones(zones[0], zones[1])...)}
	c.Stores = !slices.Equal(stores[0], stores[1])
	var err error
	if c.Unjudged, err = around(before, after, c); err != nil {
		return nil, err
	}
	if o == nil || len(o.Logs) == 0 {
		return c, nil
	}
	clients, times := make(map[string]*adminapi.ClientDiff), new(timeline)
	for i, config := range configs {
		if len(zones[i]) == 0 {
			continue // it refuses nothing
		}
		again := *o
		again.Decided = func(r *logs.Record, status int) {
			count(clients, r.ClientIP, i, status)
			times.add(r.Start.Unix(), i, status != 0)
		}
		if _, err := offline.Replay(config, &again); err != nil {
			return nil, err
		}
	}
	c.Log = sumUp(clients)
	times.into(c.Log)
	return c, nil
}

// count counts a request that the old config (0) or the new one (1) has decided.
func count(clients map[string]*adminapi.ClientDiff, client string, config, status int) {
	d := clients[client]
	if d == nil {
		d = &adminapi.ClientDiff{Client: strings.Clone(client)}
		clients[d.Client] = d
	}
	requests, refused := [...]*int64{&d.Before, &d.Requests}[config], [...]*int64{&d.Was, &d.Is}[config]
	if *requests++; status != 0 {
		*refused++
	}
}

// sumUp sums up the counts of clients.
func sumUp(clients map[string]*adminapi.ClientDiff) *adminapi.LogDiff {
	d := &adminapi.LogDiff{Clients: int64(len(clients))}
	for _, c := range clients {
		c.Requests = max(c.Requests, c.Before)
		d.Requests, d.Was, d.Is = d.Requests+c.Requests, d.Was+c.Was, d.Is+c.Is
		switch {
		case c.Is > c.Was:
			d.More++
			d.MoreOf = append(d.MoreOf, *c)
		case c.Is < c.Was:
			d.Less++
			d.LessOf = append(d.LessOf, *c)
		}
	}
	for _, list := range []*[]adminapi.ClientDiff{&d.MoreOf, &d.LessOf} {
		slices.SortFunc(*list, func(a, b adminapi.ClientDiff) int {
			return cmp.Or(cmp.Compare(abs(b.Is-b.Was), abs(a.Is-a.Was)), strings.Compare(a.Client, b.Client))
		})
		*list = (*list)[:min(len(*list), maxClientDiffs)]
	}
	return d
}

func abs(n int64) int64 { return max(n, -n) }

// storesIn returns the stores that handlers of a config name, in a form that can be compared, and is not shown because
// it may have secrets.
func storesIn(stores []any) (all []string) {
	for _, store := range stores {
		if store != nil {
			text, _ := json.Marshal(store)
			all = append(all, string(text))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
