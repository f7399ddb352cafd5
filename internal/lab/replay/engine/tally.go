package engine

import (
	"hash/maphash"
	"math"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

const (
	maxCells    = 2 << 20 // of the keys of a zone
	maxStatuses = 16      // that are told apart for each key
	maxAgent    = 200     // bytes of the name of an agent
)

// tallies count what a replay finds out.
type tallies struct {
	requests int64
	clients  map[uint64]*person // by the hash of their address
	host     string             // of the first request that has one
	from, to int64
	zones    map[string]*zoneTally
	maxKeys  int // bounds the clients, and the keys of each zone, as the store does
}

// zoneTally counts what happens in the zones of a name, with the limit in the config.
type zoneTally struct {
	*zone.Zone
	window int64 // in microseconds; 0 if peaks cannot be counted
	stats  []*stats.Counters
	report *replay.Zone // without what is known at the end
	keys   map[string]*keyTally
	cells  cells
	room   int // cells that keys may still have

	notJudged int64  // requests that lack what the zone looks at
	why       string // for the first of them
}

// keyTally counts what happens to a key.
type keyTally struct {
	key      string
	requests int64
	peak     peak
	hourly   hourly
	person   person  // who has sent its requests
	client   *person // if that was a single one, with all requests of the log; nil otherwise
	refused  int64

	// These are counted only of keys that are refused.
	first  int64
	status map[int]int64
	agent  string
	cells  cells
}

func newTallies(c *offline.Config, maxKeys int) *tallies {
	t := &tallies{
		clients: make(map[uint64]*person), zones: make(map[string]*zoneTally), from: math.MaxInt64, to: math.MinInt64, maxKeys: maxKeys,
	}
	for name, z := range c.Zones {
		made := &zoneTally{Zone: z, report: reportOf(z), keys: make(map[string]*keyTally), room: maxCells}
		made.window = int64(math.Round(made.report.Window * 1e6))
		t.zones[name] = made
	}
	return t
}

// request counts a request, whatever it meets.
func (t *tallies) request(x *exchange, now int64) {
	t.requests++
	t.from, t.to = min(t.from, now), max(t.to, now)
	if p := t.personOf(x.client); p != nil {
		p.meet(&x.person)
	}
	if t.host == "" {
		t.host = strings.Clone(x.Host)
	}
}

// personOf returns the client with an address; nil if there is no room for it.
func (t *tallies) personOf(address string) *person {
	hash := maphash.String(seed, address)
	p := t.clients[hash]
	if p == nil && len(t.clients) < t.maxKeys {
		p = new(person)
		t.clients[hash] = p
	}
	return p
}

// looks returns what makes a key look like people, see [person.looks].
func (k *keyTally) looks() (signs []string, shared bool) {
	if k.client != nil {
		return k.client.looks()
	}
	return k.person.looks()
}

// count counts what the zones of a handler have decided. Of a limit that is tried only the refusals count.
func (e *engine) count(w *way, v *limiter.Verdict) {
	for _, decided := range [][]limiter.Entry{v.Entries, v.Rejections} {
		for i := range decided {
			of := &decided[i]
			if e.decided != nil {
				w.keys = append(w.keys, strings.Clone(of.Key))
			}
			switch {
			case v.Err != nil:
			case e.try == nil:
				e.tallies.add(w, e.tallies.zones[of.Zone.Name], of, e.Micros())
			case e.try.zone == of.Zone.Name && of.Outcome.WouldRefuse():
				e.try.count(of.Key, e.tallies.maxKeys)
			}
		}
	}
}

// add counts what a zone has decided.
func (t *tallies) add(x *way, z *zoneTally, e *limiter.Entry, now int64) {
	z.report.Outcomes[outcome.Names[e.Outcome]]++
	refused := e.Outcome.WouldRefuse()
	z.cells.add(now, refused)
	if refused {
		if z.report.Refused++; z.report.FirstRefused == nil {
			z.report.FirstRefused = new(time.UnixMicro(now).UTC())
		}
	}
	k := z.keys[e.Key]
	if k == nil {
		if len(z.keys) >= t.maxKeys {
			return
		}
		k = &keyTally{key: strings.Clone(e.Key), client: t.personOf(x.client)}
		z.keys[k.key] = k
	}
	k.requests++
	k.person.meet(&x.person)
	if k.client != nil && k.client != t.personOf(x.client) {
		k.client = nil
	}
	if m := z.Charge.Matcher; e.Asked() && (m == nil || m.Match(x.Status, x.RespHeader)) {
		switch {
		case e.Policy.Slots:
			cost := e.Cost
			k.peak.acquire(cost)
			x.engine.Plan(x.end, func() { k.peak.release(cost) })
		case z.window > 0:
			k.peak.add(now, z.window, e.Cost)
			k.hourly.add(now, e.Cost)
		}
	}
	if refused {
		k.refuse(x, now)
	}
	if k.refused > 0 && z.room > 0 {
		z.room -= k.cells.add(now, refused)
	}
}

// refuse counts a request that is refused.
func (k *keyTally) refuse(x *way, now int64) {
	if k.refused++; k.refused == 1 {
		k.first, k.status = now, make(map[int]int64, 1)
	}
	if len(k.status) < maxStatuses || k.status[x.Status] > 0 {
		k.status[x.Status]++
	}
	agent := x.Header.Get("User-Agent")
	if agent = agent[:min(len(agent), maxAgent)]; agent != k.agent {
		k.agent = strings.Clone(agent)
	}
}

// cells count requests over time. There are only the minutes in which there were some.
type cells []cell

type cell struct {
	minute            int32 // since 1970
	admitted, refused uint32
}

const minute = int64(time.Minute / time.Microsecond)

// add counts a request, and returns how many cells are new.
func (all *cells) add(now int64, refused bool) (added int) {
	at, n := int32(now/minute), len(*all)
	if n == 0 || (*all)[n-1].minute != at {
		*all = append(*all, cell{minute: at})
		n, added = n+1, 1
	}
	if refused {
		(*all)[n-1].refused++
	} else {
		(*all)[n-1].admitted++
	}
	return added
}

// series returns at most so many steps from the first to the last request of the replay. What was decided after that, because it
// had waited, is in the last one.
func (t *tallies) series(all cells, most int32) replay.Series {
	first, last := int32(0), int32(0)
	if t.requests > 0 {
		first, last = int32(t.from/minute), int32(t.to/minute)
	}
	length := (last-first)/most + 1
	steps := (last-first)/length + 1
	made := replay.Series{
		Start: int64(first) * minute / 1000, Step: int64(length) * minute / 1000, Admitted: make([]int64, steps), Refused: make([]int64, steps),
	}
	for _, one := range all {
		step := min((one.minute-first)/length, steps-1)
		made.Admitted[step] += int64(one.admitted)
		made.Refused[step] += int64(one.refused)
	}
	return made
}
