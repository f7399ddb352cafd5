package engine

import (
	"hash/maphash"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
)

// peak is the most that a key uses of any window, exactly: each window ends with a request, and begins
// after the requests that are a window older.
type peak struct {
	most, used int64
	uses       []usage // that are in the window
}

// usage is what a key has used at a time.
type usage struct{ at, cost int64 }

const (
	// exactUses is how many uses of a window are kept apart. Keys that come more often have those put
	// together that are closer than a part of the window.
	exactUses = 256
	parts     = 4096
)

// add adds what a request costs. The window is in microseconds.
func (p *peak) add(now, window, cost int64) {
	for len(p.uses) > 0 && p.uses[0].at <= now-window {
		p.used -= p.uses[0].cost
		p.uses = p.uses[1:]
	}
	if n := len(p.uses); n > exactUses && now-p.uses[n-1].at < window/parts {
		p.uses[n-1].cost += cost
	} else if cost > 0 {
		p.uses = append(p.uses, usage{now, cost})
	}
	p.acquire(cost)
}

// acquire adds slots that a request has until [peak.release].
func (p *peak) acquire(slots int64) {
	p.used += slots
	p.most = max(p.most, p.used)
}

func (p *peak) release(slots int64) { p.used -= slots }

// hourly is the most that a key uses in an hour of the clock.
type hourly struct{ hour, used, most int64 }

func (h *hourly) add(now, cost int64) {
	if hour := now / time.Hour.Microseconds(); hour != h.hour {
		h.hour, h.used = hour, 0
	}
	h.used += cost
	h.most = max(h.most, h.used)
}

// person is what tells people from programs.
type person struct {
	signs  [len(namesOfSigns)]bool
	agents [manyAgents]uint32 // hashes of different agents; 0 for none
}

// manyAgents are more than a single person usually has.
const manyAgents = 3

// namesOfSigns are those of what one request tells, the sure ones first.
var namesOfSigns = [...]string{"logged in", "cookie", "images or scripts of pages", "304 from its cache"}

// partsOfPages are the endings of what browsers load with a page.
var partsOfPages = strings.Fields(".css .js .mjs .png .jpg .jpeg .gif .svg .webp .avif .ico .woff .woff2")

// seed is that of all hashes of agents and addresses.
var seed = maphash.MakeSeed()

// personIn returns what a request says about its client.
func personIn(r *logs.Record) person {
	file, _, _ := strings.Cut(r.URI, "?")
	return person{
		signs: [...]bool{
			r.User != "", r.Header.Get("Cookie") != "", slices.Contains(partsOfPages, path.Ext(file)), r.Status == http.StatusNotModified,
		},
		agents: [manyAgents]uint32{uint32(maphash.String(seed, r.Header.Get("User-Agent"))) | 1},
	}
}

// meet adds what a request says about the client.
func (p *person) meet(in *person) {
	for i, is := range in.signs {
		p.signs[i] = p.signs[i] || is
	}
	if i := slices.IndexFunc(p.agents[:], func(a uint32) bool { return a == in.agents[0] || a == 0 }); i >= 0 {
		p.agents[i] = in.agents[0]
	}
}

// looks returns what makes a client look like people, and none if it does not. A login or a cookie is enough. The others
// count if there are two, because some programs have one. Shared reports whether it looks like several people behind one address.
func (p *person) looks() (signs []string, shared bool) {
	for i, name := range namesOfSigns {
		if p.signs[i] {
			signs = append(signs, name)
		}
	}
	many := p.agents[manyAgents-1] != 0
	if many {
		signs = append(signs, "several agents")
	}
	if !p.signs[0] && !p.signs[1] && len(signs) < 2 {
		return nil, false
	}
	return signs, many && len(signs) > 1
}
