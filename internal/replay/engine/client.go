package engine

import (
	"hash/maphash"
	"math/bits"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// peak is the most that a key uses of any window, exactly: each window ends with a request, and begins
// after the requests that are a window older.
type peak struct {
	most, used int64
	head       int // of the uses that are in the window
	uses       []usage
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
	for p.head < len(p.uses) && p.uses[p.head].at <= now-window {
		p.used -= p.uses[p.head].cost
		p.head++
	}
	if cost <= 0 {
		return
	}
	n := len(p.uses)
	if n-p.head > exactUses && now-p.uses[n-1].at < window/parts {
		p.uses[n-1].cost += cost
	} else {
		if p.head > 0 && n == cap(p.uses) { // there is room at the front
			n = copy(p.uses, p.uses[p.head:])
			p.uses, p.head = p.uses[:n], 0
		}
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
	user, cookie          bool
	page, part, unchanged bool
	hours                 uint32             // of the day, in UTC, in which requests began
	agents                [manyAgents]uint32 // hashes of different agents; 0 for none
}

const (
	manyAgents = 3 // a single person rarely has as many
	night      = 8 // hours
	workday    = 5 // hours, at least
)

// partsOfPages are the endings of what browsers load with a page.
var partsOfPages = strings.Fields(".css .js .mjs .png .jpg .jpeg .gif .svg .webp .avif .ico .woff .woff2")

// meet notes what a request says about its client.
func (p *person) meet(r *logs.Record, seed maphash.Seed) {
	p.user = p.user || r.User != ""
	p.cookie = p.cookie || r.Header.Get("Cookie") != ""
	p.unchanged = p.unchanged || r.Status == http.StatusNotModified
	p.hours |= 1 << r.Start.UTC().Hour()
	file, _, _ := strings.Cut(r.URI, "?")
	part := slices.Contains(partsOfPages, path.Ext(file))
	p.part, p.page = p.part || part, p.page || !part
	agent := uint32(maphash.String(seed, r.Header.Get("User-Agent"))) | 1
	if i := slices.IndexFunc(p.agents[:], func(a uint32) bool { return a == agent || a == 0 }); i >= 0 {
		p.agents[i] = agent
	}
}

// signs returns what makes a client look like people, and none if it does not. A login or a cookie is
// enough. The others count if there are two, because some programs have one. Shared reports whether it looks
// like several people behind one address. The log has requests of so much time.
func (p *person) signs(of time.Duration) (signs []string, shared bool) {
	note := func(is bool, sign string) {
		if is {
			signs = append(signs, sign)
		}
	}
	note(p.user, "logged in")
	note(p.cookie, "cookie")
	sure, many := len(signs) > 0, p.agents[manyAgents-1] != 0
	note(many, "several agents")
	note(p.part && p.page, "images or scripts of pages")
	note(p.unchanged, "304 from its cache")
	note(of >= (24-night/2)*time.Hour && p.sleeps(), "a pause at night")
	if !sure && len(signs) < 2 {
		return nil, false
	}
	return signs, many && len(signs) > 1
}

// sleeps reports whether requests came in some hours of the day, but in none of a night.
func (p *person) sleeps() bool {
	awake := uint64(p.hours) | uint64(p.hours)<<24
	for range night - 1 { // a bit stays unset if those of the next hours are
		awake |= awake >> 1
	}
	const day = 1<<24 - 1
	return awake&day != day && bits.OnesCount32(p.hours) >= workday
}
