package world

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// drawAddresses has the keys of a world with whole instances be addresses, about which networks decide that operators
// ban, exempt and limit. Some requests come after all instances have learned of it.
func (p *Plan) drawAddresses(r *rand.Rand, length time.Duration, hot bool) {
	p.Addresses = []int{4, 4, 6}[r.IntN(3)]
	p.Zones[r.IntN(len(p.Zones))].Overrides = true
	for i := range p.Zones {
		p.Zones[i].Overrides = p.Zones[i].Overrides || r.IntN(2) == 0
	}
	for range 2 + r.IntN(4) {
		e := Event{At: between(r.Uint64(), 0, length), Kind: []Kind{Override, Override, Override, Clear}[r.IntN(4)], Instance: r.IntN(p.Instances)}
		drawOverride(r, p, &e, length)
		e.Key = -1 - r.IntN(maxNetworks)
		p.Events = append(p.Events, e)
	}
	p.add(6+r.IntN(10), r, length+8*time.Second, requests)
	for i := range p.Events {
		if e := &p.Events[i]; operations[e.Kind].sort == requests && !hot && r.IntN(2) == 0 {
			e.Key = r.IntN(p.keys())
		}
	}
}

// drawHot returns a plan in which a key comes so often, and to several instances, that units of it are charged ahead.
// In half of them a hold is so short that units are charged ahead again and again, and the limit is used up again and
// again; in the others it lasts longer than a change takes to be known. Meanwhile operators change the rules of the
// key, Redis is late, or the first instance cannot reach it.
func drawHot(seed uint64, r *rand.Rand) *Plan {
	z := Zone{Overrides: r.IntN(2) == 0, Lend: []time.Duration{algorithms.MaxHold, algorithms.MaxHold, time.Second}[r.IntN(3)]}
	z.Algorithm = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"}[r.IntN(5)]
	z.Limit = algorithms.Limit{Events: 5 + r.Int64N(40), Window: time.Hour}
	length, clients := between(r.Uint64(), 3*time.Second, 6*time.Second), 40+r.IntN(60)
	if r.IntN(2) == 0 {
		z.Lend = between(r.Uint64(), 2*algorithms.MinHold, 12*algorithms.MinHold).Truncate(time.Microsecond)
		z.Limit.Window = between(r.Uint64(), 11*z.Lend, 20*z.Lend).Truncate(time.Microsecond) + time.Microsecond
		length, clients = 16*z.Lend, 200+r.IntN(100)
		z.Limit.Events = int64(clients) * int64(z.Limit.Window) / int64(length) * (5 + r.Int64N(10)) / 10
	} else if r.IntN(2) == 0 {
		z.BanAfter, z.BanFor = 1+r.Int64N(3), between(r.Uint64(), 5*time.Second, 20*time.Second).Truncate(time.Microsecond)
	}
	p := &Plan{Seed: seed, Instances: 2 + r.IntN(2), Zones: []Zone{z}}
	for range clients {
		e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Cost: 1}
		if r.IntN(2) == 0 { // most come to the first instance
			e.Instance = r.IntN(p.Instances)
		}
		if r.IntN(8) == 0 {
			e.Cost = 1 + r.Int64N(5)
		}
		p.Events = append(p.Events, e)
	}
	if z.Overrides {
		p.add(1+r.IntN(4), r, length, operators)
	}
	switch r.IntN(5) {
	case 0:
		p.add(1, r, length, links)
	case 1:
		p.drawCut(r, length)
	case 2, 3:
		p.Events = append(p.Events, Event{Kind: Delay, Instance: -1, For: length, After: between(r.Uint64(), time.Millisecond, timeout/2)})
	}
	for i := range p.Events {
		p.Events[i].Key = 0
	}
	p.sort()
	return p
}

// drawCut has the first instance not reach Redis for about as long as it holds units, or longer. Most clients that come to it
// meanwhile cost nothing, so that it keeps what it holds, and the others use up the limit.
func (p *Plan) drawCut(r *rand.Rand, length time.Duration) {
	from, lasts := between(r.Uint64(), length/8, 3*length/8), between(r.Uint64(), 3*length/8, 3*length/4)
	for i := range p.Events {
		switch e := &p.Events[i]; {
		case e.Kind != Take || e.At < from || e.At > from+lasts:
		case e.Instance > 0 || r.IntN(2) == 0:
			e.Instance, e.Cost = 1+r.IntN(p.Instances-1), 1+r.Int64N(4)
		case r.IntN(4) > 0:
			e.Cost = 0
		}
	}
	p.Events = append(p.Events, Event{At: from, Kind: []Kind{LoseRequests, LoseReplies}[r.IntN(2)], For: lasts, Surely: true})
}

// Keys have names such as k0, or are addresses: then networks around them can decide about requests of whole instances.

// addresses are those of clients. The first one is in both networks, the next two in the larger one, and the last one
// in none.
var addresses = map[int][]string{
	4: {"203.0.113.1", "203.0.113.77", "203.0.113.200", "198.51.100.9"},
	6: {"2001:db8:7::1", "2001:db8:7:77::1", "2001:db8:7:c8::1", "2001:db8:8::1"},
}

// networks are those with overrides. The first one is in the second. Those of worlds in which keys are no addresses are
// around none.
var networks = map[int][maxNetworks]netip.Prefix{
	0: {netip.MustParsePrefix("203.0.0.0/9"), netip.MustParsePrefix("203.0.0.0/8")},
	4: {netip.MustParsePrefix("203.0.113.0/30"), netip.MustParsePrefix("203.0.113.0/24")},
	6: {netip.MustParsePrefix("2001:db8:7::/60"), netip.MustParsePrefix("2001:db8:7::/48")},
}

// around are the numbers of the networks around an address, the smallest first.
func (p *Plan) around(key int) (numbers []int) {
	for i, n := range networks[p.Addresses] {
		if n.Contains(p.prefix(key).Addr()) {
			numbers = append(numbers, -1-i)
		}
	}
	return numbers
}

// keys is how many keys a zone has at most.
func (p *Plan) keys() int { return max(maxKeys, len(addresses[p.Addresses])) }

// client is what a client sends that has a key.
func (p *Plan) client(number int) string {
	if p.Addresses == 0 {
		return p.keyName(number)
	}
	return addresses[p.Addresses][number]
}

// keyName is the name of a key, as stores have it.
func (p *Plan) keyName(number int) string {
	switch p.Addresses {
	case 0:
		return fmt.Sprintf("k%d", number)
	case 4:
		return p.client(number)
	}
	return p.prefix(number).String()
}

// prefix is a key that is an address.
func (p *Plan) prefix(number int) netip.Prefix {
	bits := map[int]int{4: 32, 6: 64}[p.Addresses]
	return netip.PrefixFrom(netip.MustParseAddr(p.client(number)), bits).Masked()
}

// tag is the name of a key, as it is in the keys of Redis.
func (p *Plan) tag(number int) string { return store.Escape(p.keyName(number)) }

// selector says whose override is meant by the key of an event: that of a key or, below 0, that of a network, from -1
// on.
func (p *Plan) selector(number int) store.Selector {
	switch {
	case number < 0:
		return store.Selector{Network: networks[p.Addresses][-1-number]}
	case p.Addresses == 0:
		return store.Selector{Key: p.keyName(number)}
	}
	return store.Selector{Key: p.keyName(number), Network: p.prefix(number)}
}
