package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
)

const maxClientDiffs = 20 // that are listed

// comparison counts what the old config (0) and the new one (1) decide.
type comparison struct {
	clients map[string]*client
	refused [2]int64
}

// client counts the requests of a client, which has the name that a zone has for it: its key. Without a key it is its
// address.
type client struct{ requests, refused [2]int64 }

// decided counts a request that one of the configs has decided.
func (c *comparison) decided(nth int, x *way) {
	names := x.keys
	if len(names) == 0 { // it has met no zone
		names = []string{""}
	}
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		name := cmp.Or(key, x.client)
		of := c.clients[name]
		if of == nil && len(c.clients) >= x.engine.tallies.maxKeys {
			continue
		}
		if of == nil {
			of = new(client)
			c.clients[strings.Clone(name)] = of
		}
		if of.requests[nth]++; x.status != 0 && key == x.refused {
			of.refused[nth]++
		}
	}
	if x.status != 0 {
		c.refused[nth]++
	}
}

// Compare says what differs for the clients of some logs between two configs. It reads the logs once.
func Compare(before, after *offline.Config, o *replay.Options) (*adminapi.LogDiff, error) {
	c := comparison{clients: make(map[string]*client)}
	var engines []*engine
	for nth, config := range []*offline.Config{before, after} {
		e, err := newSetup(config).newEngine(nil)
		if err != nil {
			return nil, err
		}
		e.decided = func(x *way) { c.decided(nth, x) }
		engines = append(engines, e)
	}
	m, err := read(o, engines[:1], engines[1:])
	if err != nil {
		return nil, err
	}
	r := engines[1].result(m)
	d := &adminapi.LogDiff{Requests: r.Requests, Was: c.refused[0], Is: c.refused[1], Clients: int64(r.Clients), Unknown: r.Unknown}
	for _, name := range slices.Sorted(maps.Keys(engines[1].tallies.zones)) {
		if z := engines[1].tallies.zones[name]; z.notJudged > 0 {
			d.Unknown = append(d.Unknown, "zone "+name+" is "+engines[1].tallies.unjudged(z, 0))
		}
	}
	if r.NotUnderstood > 0 {
		d.Unknown = append(d.Unknown, fmt.Sprintf("%d of %d lines, which are not understood, such as %s", r.NotUnderstood, r.Lines, r.FirstBad[0]))
	}
	for name, n := range c.clients {
		one := adminapi.ClientDiff{Client: name, Requests: max(n.requests[0], n.requests[1]), Was: n.refused[0], Is: n.refused[1]}
		switch {
		case one.Is > one.Was:
			d.MoreOf = append(d.MoreOf, one)
		case one.Is < one.Was:
			d.LessOf = append(d.LessOf, one)
		}
	}
	d.More, d.Less = int64(len(d.MoreOf)), int64(len(d.LessOf))
	for _, list := range []*[]adminapi.ClientDiff{&d.MoreOf, &d.LessOf} {
		slices.SortFunc(*list, func(a, b adminapi.ClientDiff) int {
			return cmp.Or(cmp.Compare(abs(b.Is-b.Was), abs(a.Is-a.Was)), strings.Compare(a.Client, b.Client))
		})
		*list = (*list)[:min(len(*list), maxClientDiffs)]
	}
	return d, nil
}

func abs(n int64) int64 { return max(n, -n) }
