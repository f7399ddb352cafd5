package engine

import (
	"cmp"
	"hash/maphash"
	"math"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// tallies count what a replay finds out.
type tallies struct {
	calendar
	seed      maphash.Seed
	requests  int64
	clients   map[uint64]struct{}
	hosts     map[string]int64 // requests
	from, to  int64
	zones     map[string]*zoneTally
	byHandler [][]*zoneTally
	maxKeys   int
}

// zoneTally counts what happens in the zones of a name, with the limit in the config.
type zoneTally struct {
	name     string
	zone     *zone.Zone
	window   int64 // in microseconds; 0 if peaks cannot be counted
	slots    bool
	outcomes [outcome.Count]int64
	refused  int64
	first    int64 // when it refused first
	keys     map[string]*keyTally
	more     int64 // requests of keys for which there is no room
	cells    cells
	room     int // cells that keys may still have

	notJudged int64  // requests that lack what the zone looks at
	why       string // for the first of them
}

// keyTally counts what happens to a key.
type keyTally struct {
	key      string
	requests int64
	peak     peak
	person   person
	refusals *keyRefusals // nil if there are none
}

// keyRefusals is what is counted only of keys that are refused.
type keyRefusals struct {
	refused, first int64
	status         map[int]int64
	agent          string
	cells          cells
}

// refusals are those by a limit that is tried, by key.
type refusals map[string]int64

// maxCells bounds the cells of the keys of a zone.
const maxCells = 2 << 20

func newTallies(c *Config) *tallies {
	t := &tallies{
		seed: maphash.MakeSeed(), clients: make(map[uint64]struct{}), hosts: make(map[string]int64), zones: make(map[string]*zoneTally),
		from: math.MaxInt64, to: math.MinInt64, maxKeys: cmp.Or(c.MaxKeys, memorystore.DefaultMaxKeys),
	}
	for _, h := range c.Handlers {
		all := make([]*zoneTally, len(h.Zones))
		for i, z := range h.Zones {
			if t.zones[z.Name] == nil {
				t.zones[z.Name] = newZoneTally(z)
			}
			all[i] = t.zones[z.Name]
		}
		t.byHandler = append(t.byHandler, all)
	}
	return t
}

func newZoneTally(z *zone.Zone) *zoneTally {
	return &zoneTally{
		name: z.Name, zone: z, keys: make(map[string]*keyTally), first: math.MaxInt64, room: maxCells,
		window: windowOf(z).Microseconds(), slots: z.CountsSlots(),
	}
}

// span is the time from the first to the last request.
func (t *tallies) span() time.Duration { return time.Duration(t.to-t.from) * time.Microsecond }

// request counts a request, whatever it meets.
func (t *tallies) request(now int64) {
	t.requests++
	t.from, t.to = min(t.from, now), max(t.to, now)
}

// client counts the client and the host of a request.
func (t *tallies) client(f *exchange) {
	if hash := maphash.String(t.seed, f.client); len(t.clients) < t.maxKeys {
		t.clients[hash] = struct{}{}
	}
	const maxHosts = 1000 // because clients choose them
	switch host := f.record.Host; {
	case host == "":
	case t.hosts[host] > 0:
		t.hosts[host]++
	case len(t.hosts) < maxHosts:
		t.hosts[strings.Clone(host)] = 1
	}
}

// decision counts what a handler has decided in a world.
func (t *tallies) decision(f *exchange, w *world, handler int, v *limiter.Verdict, now int64) {
	if v.Err != nil {
		return
	}
	for i := range v.Entries {
		e := &v.Entries[i]
		if w.try == nil {
			t.add(f, t.byHandler[handler][e.Zone.Index], e.Key, e.Cost, e, e.Outcome, now)
		} else if w.try.Zone == e.Zone.Name && refuses(e.Outcome) {
			w.try.tally.add(e.Key)
		}
	}
	for i := range v.Rejections {
		r := &v.Rejections[i]
		if w.try == nil {
			t.add(f, t.byHandler[handler][r.Zone.Index], r.Key, 0, nil, outcome.Rejected, now)
		} else if w.try.Zone == r.Zone.Name {
			w.try.tally.add(r.Key)
		}
	}
}

// refuses reports whether a limit refuses a request, or would if it were enforced.
func refuses(o outcome.Outcome) bool { return o.Refused() || o == outcome.DryRun }

func (r refusals) add(key string) {
	if r[key] == 0 {
		key = strings.Clone(key)
	}
	r[key]++
}

// add counts what a zone has decided. The entry is nil if the store was not asked.
func (t *tallies) add(f *exchange, z *zoneTally, key string, cost int64, e *limiter.Entry, o outcome.Outcome, now int64) {
	z.outcomes[o]++
	step, refused := t.index(now), refuses(o)
	z.cells.add(&t.calendar, step, refused)
	if refused {
		z.refused++
		z.first = min(z.first, now)
	}
	k := z.keys[key]
	if k == nil {
		if len(z.keys) >= t.maxKeys {
			z.more++
			return
		}
		k = &keyTally{key: strings.Clone(key)}
		z.keys[k.key] = k
	}
	k.requests++
	k.person.meet(f.record, t.seed)
	if e != nil && t.counts(z, f) {
		switch {
		case e.Policy.Slots:
			k.peak.acquire(cost)
			f.acquire(k, cost)
		case z.window > 0:
			k.peak.add(now, z.window, cost)
		}
	}
	if refused {
		k.refuse(f, now)
	}
	if r := k.refusals; r != nil && z.room > 0 {
		before := len(r.cells.all)
		r.cells.add(&t.calendar, step, refused)
		z.room -= len(r.cells.all) - before
	}
}

// counts reports whether the response of a request counts in a zone.
func (t *tallies) counts(z *zoneTally, f *exchange) bool {
	m := z.zone.Charge.Matcher()
	return m == nil || m.Match(f.record.Status, f.responseHeader(f.record.Status))
}

// maxStatuses bounds the statuses that are told apart for each key.
const maxStatuses = 16

func (k *keyTally) refuse(f *exchange, now int64) {
	r := k.refusals
	if r == nil {
		r = &keyRefusals{first: now, status: make(map[int]int64, 1)}
		k.refusals = r
	}
	r.refused++
	if status := f.record.Status; len(r.status) < maxStatuses || r.status[status] > 0 {
		r.status[status]++
	}
	agent := f.record.Header.Get("User-Agent")
	if agent = agent[:min(len(agent), maxAgent)]; agent != r.agent {
		r.agent = strings.Clone(agent)
	}
}

// maxAgent bounds the agents that are kept.
const maxAgent = 200
