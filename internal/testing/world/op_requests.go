package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Take is a client that asks the store of an instance, without a limiter. The charge is adjusted by Delta, After the
// answer.
const Take Kind = "Take"

var _ = operate(operation{Kind: Take, sort: requests, often: 10, draw: drawTake, ask: (*world).take})

func drawTake(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Zone, e.Key, e.Cost = r.IntN(len(p.Zones)), r.IntN(maxKeys), 1
	if r.IntN(4) == 0 {
		e.Cost = r.Int64N(4)
	}
	e.Returns = r.IntN(4) == 0
	switch {
	case e.Cost == 0:
	case p.Zones[e.Zone].slots():
		e.Delta, e.After = -e.Cost, between(r.Uint64(), 0, time.Second)
	case r.IntN(5) == 0:
		e.Delta, e.After = -r.Int64N(e.Cost)-1, between(r.Uint64(), 0, time.Second)
	case r.IntN(8) == 0:
		e.Delta, e.After = 1+r.Int64N(3), between(r.Uint64(), 0, time.Second)
	}
}

func (w *world) take(i int, e *Event) {
	in := w.instance(e.Instance)
	if in.dead() {
		return
	}
	who := client(i)
	c := store.Check{Rule: w.rules[e.Zone], Key: w.plan.keyName(e.Key), Cost: e.Cost, KeyRules: w.plan.Zones[e.Zone].rules()}
	if w.plan.Zones[e.Zone].slots() && e.Cost > 0 {
		c.LeaseID = store.NewLeaseID()
	}
	var d [1]algorithms.Decision
	ctx := context.WithValue(context.Background(), client(0), who)
	asked := time.Now()
	err := in.Take(ctx, []store.Check{c}, d[:])
	if wait := d[0].RetryAfter; e.Returns && err == nil && !d[0].Allowed && wait <= 10*time.Second {
		w.wait(wait+time.Duration(1+i)*time.Microsecond, who) // others were told the same
		if c.LeaseID != "" {
			c.LeaseID = store.NewLeaseID() // perhaps Redis has charged the first one, and it is yet to be given back
		}
		err = in.Take(ctx, []store.Check{c}, d[:])
	}
	if e.Delta != 0 && err == nil && d[0].Allowed && !d[0].Exempt {
		w.wait(e.After, who)
		in.Adjust(store.Adjustment{
			Check: c, At: d[0].Booked(), Turn: d[0].Turn(), Override: d[0].Override, Delta: e.Delta, Known: time.Since(asked),
		})
	}
}

// Request is a request to a whole instance: to one zone, or to all (Zone -1). The response takes After, and says that it
// has cost Delta more than what was charged before. With For, the client leaves so much later.
const Request Kind = "Request"

var _ = operate(operation{
	Kind: Request, sort: requests, often: 20, fits: func(p *Plan) bool { return p.Whole }, draw: drawRequest, ask: (*world).request,
})

func drawRequest(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Zone, e.Key, e.Cost = r.IntN(len(p.Zones)+1)-1, r.IntN(maxKeys), 1
	if r.IntN(4) == 0 {
		e.Cost = r.Int64N(4)
	}
	if r.IntN(2) == 0 {
		e.After = between(r.Uint64(), 0, time.Second)
	}
	switch r.IntN(8) {
	case 0:
		e.Delta = 1 + r.Int64N(3)
	case 1:
		e.Delta = -r.Int64N(e.Cost + 1)
	case 2:
		e.Sort = []string{exempt, blocked}[r.IntN(2)]
	}
	if e.Sort == "" && r.IntN(3) == 0 && slices.ContainsFunc(p.Zones, func(z Zone) bool { return z.Paying > 0 }) {
		e.Sort = paying
	}
	if r.IntN(6) == 0 {
		e.For = between(r.Uint64(), 0, 2*time.Second)
	}
}

// Verdict is what an instance has decided about a request.
type Verdict struct {
	Number int // of the event
	Event
	Instance     int // its number
	Began, Ended time.Duration
	Passes       bool
	Outcome      outcome.Outcome // if no zone refuses
	Err          string
	Parts        []Part // with the store, or the local memory
	Unasked      []Part // what zones have refused without their store
}

// Part is what one zone has decided about a request.
type Part struct {
	Zone    int
	Cost    int64
	Quota   int64 // of the limit
	Outcome outcome.Outcome
	DryRun  bool
	Banned  bool // without the store: by a network
	Wait    time.Duration
}

// parts returns what zones have decided.
func parts(of []limiter.Entry) (all []Part) {
	for i := range of {
		e := &of[i]
		p := Part{Zone: e.Zone.Index, Cost: e.Cost, Outcome: e.Outcome, DryRun: e.DryRun, Banned: e.Decision.Banned, Wait: e.Decision.RetryAfter}
		if e.Policy != nil {
			p.Quota = e.Policy.Quota
		}
		all = append(all, p)
	}
	return all
}

func (w *world) request(i int, e *Event) {
	who := client(i)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), client(0), who))
	defer cancel()
	if e.For > 0 {
		defer time.AfterFunc(e.For, cancel).Stop()
	}
	in := w.instance(e.Instance)
	if in.dead() {
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx)
	r.Header[keyHeader], r.Header[costHeader] = []string{w.plan.client(e.Key)}, []string{strconv.FormatInt(e.Cost, 10)}
	for z := range w.plan.Zones {
		if e.Zone < 0 || e.Zone == z {
			r.Header.Add(zonesHeader, zoneName(z))
		}
	}
	if e.Sort != "" {
		r.Header.Set(sortHeader, e.Sort)
	}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
	o := Verdict{Number: i, Event: *e, Instance: in.number, Began: w.net.now()}
	g := in.whole.Load()
	v := g.limiter.Decide(r)
	o.Ended, o.Passes, o.Outcome = w.net.now(), v.Passes(), v.Outcome
	if v.Err != nil {
		o.Err = v.Err.Error()
	}
	o.Parts, o.Unasked = parts(v.Entries), parts(v.Rejections)
	c := v.Release()
	if !in.dead() {
		tell(w.history, &w.history.Verdicts, o)
	}
	if o.Passes {
		if err := c.Serve(httptest.NewRecorder(), r, w.handler(who, e), routes{}); err != nil {
			w.history.wrong("client %d: %v", i, err)
		}
	}
	if !in.dead() {
		w.history.over(who)
	}
}

// handler is what is behind the limiter.
func (w *world) handler(who client, e *Event) caddyhttp.Handler {
	return caddyhttp.HandlerFunc(func(to http.ResponseWriter, r *http.Request) error {
		after := make(chan struct{})
		w.net.at(w.net.now()+e.After, uint64(who), func() { close(after) })
		select {
		case <-after:
		case <-r.Context().Done():
		}
		to.Header().Set("Content-Type", "application/json")
		if e.Delta != 0 {
			to.Header().Set(spentHeader, strconv.FormatInt(e.spends(), 10))
		}
		status := http.StatusOK
		if e.Cost%2 == 1 {
			status = http.StatusUnauthorized
		}
		to.WriteHeader(status)
		_, err := fmt.Fprintf(to, `{%q: %d}`, spentField, e.spends())
		return err
	})
}

// spends is what a request has cost in the end, as its response says.
func (e *Event) spends() int64 { return max(0, e.Cost+e.Delta) }

// routes are those of a server without error routes.
type routes struct{}

// ErrorRoutes implements [late.Routes].
func (routes) ErrorRoutes(*http.Request) bool { return false }
