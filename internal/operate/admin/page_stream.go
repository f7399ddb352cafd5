package admin

import (
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/page"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// pagePulse is the time between two events of the page's stream.
	pagePulse = time.Second

	// refusedRate is how many refusals per second are sent in full, for the waits of the clients that
	// are refused now.
	refusedRate = 15

	// crowd is how many times as many decisions are looked at as are sent, which are chosen at random.
	// Otherwise it would be one client's.
	crowd = 5

	// maxTops bounds the zones whose top keys are looked up for one event, because that takes about a millisecond for each kind of
	// count. Other zones have their turn later.
	maxTops = 4

	// topKeys is how many keys of a zone an event has.
	topKeys = 20

	// keysPulse is how many events later the keys of memory stores are counted again, because all of
	// them have to be looked at.
	keysPulse = 30
)

// pageStart is the first event of the stream.
type pageStart struct {
	// Caddy names the process for people, and Process is another after each start. Address is what
	// --address of the command line takes; empty if that is not known.
	Caddy   string    `json:"caddy"`
	Process string    `json:"process"`
	Address string    `json:"address,omitempty"`
	Since   time.Time `json:"since"` // when the process began

	Outcomes []string `json:"outcomes"`

	// History is what happened in zones before the page was opened. It is absent for a page about the whole fleet.
	History map[string]*running.History `json:"history,omitempty"`
}

// pageSecond is how everything is now, as the routes of the API show it, and what has happened since the event before.
type pageSecond struct {
	Time     time.Time           `json:"time"`
	Zones    []adminapi.Zone     `json:"zones"`
	Stores   []adminapi.Store    `json:"stores"`
	Adaptive []adminapi.Adaptive `json:"adaptive"`

	// Instances are those of the fleet, if the page shows it and has heard of them.
	Instances []adminapi.Instance `json:"instances,omitempty"`

	// Top has the keys that were refused most in some zones.
	Top []adminapi.Top `json:"top,omitempty"`

	// Refused is a sample of the refusals, and Decisions one of the decisions that were asked for. Skipped is how many
	// of these are not in it.
	Refused   []adminapi.Decision `json:"refused,omitempty"`
	Decisions []adminapi.Decision `json:"decisions,omitempty"`
	Skipped   uint64              `json:"skipped,omitempty"`
}

// streamPage sends what the page shows, an event per second. Nothing is done for it while nobody reads,
// and for a request only what any subscriber to decisions costs.
func streamPage(c *adminCall) (any, error) {
	rate, wants, err := c.readSubscription()
	if err != nil {
		return nil, err
	}
	decisions, err := subscribe(wants)
	if err != nil {
		return nil, err
	}
	defer decisions.Unsubscribe()
	refused, err := subscribe(refuses)
	if err != nil {
		return nil, err
	}
	defer refused.Unsubscribe()
	config := running.Current()
	s := &seconds{stores: config.Stores(), zones: config.Zones()}
	views := follow(c.request.Context(), c.fleet)
	return nil, c.stream(pagePulse, func(to *events) bool {
		select {
		case s.view = <-views:
		default:
		}
		switch {
		case running.Current() != config: // the page connects again
			return false
		case s.n == 0 && !to.event("start", s.start(c.request, len(c.fleet) == 0)):
			return false
		}
		second := s.next()
		second.Refused, _ = sample(refused, refusedRate, s.zones)
		second.Decisions, second.Skipped = sample(decisions, rate, s.zones)
		return to.event("second", second)
	})
}

// refuses reports whether a decision is a refusal, or would be without a dry run.
func refuses(_, _ string, o outcome.Outcome) bool { return o.WouldRefuse() }

// subscribe subscribes to decisions.
func subscribe(wants func(zone, key string, o outcome.Outcome) bool) (*feed.Subscriber, error) {
	s, err := feed.Subscribe(wants)
	if err != nil {
		err = adminError(http.StatusServiceUnavailable, "%w: at most %d", err, feed.MaxSubscribers)
	}
	return s, err
}

// sample returns up to n of the decisions that have come, and how many there were besides. It asks for more.
func sample(from *feed.Subscriber, n int, zones []*running.Zone) (some []adminapi.Decision, skipped uint64) {
	some, skipped = from.Take()
	for len(some) > n {
		at := rand.IntN(len(some))
		some = slices.Delete(some, at, at+1)
		skipped++
	}
	from.Ask(crowd * n)
	for i := range some {
		split(&some[i], zones)
	}
	return some, skipped
}

// seconds makes the events of a page's stream.
type seconds struct {
	stores []*running.Store
	zones  []*running.Zone

	n    int              // events so far
	keys map[string]int64 // of zones in memory, when they were counted
	turn int              // the zone whose top keys are next

	view *fleet.View // nil while the page is about this instance
}

// start is the first event.
func (s *seconds) start(r *http.Request, alone bool) *pageStart {
	start := &pageStart{
		Caddy: running.ProcessName(), Process: store.Process(), Address: endpointOf(r), Since: running.Began, Outcomes: outcome.Names[:],
	}
	if alone {
		start.History = make(map[string]*running.History)
		for _, z := range s.zones {
			start.History[z.Name] = z.History()
		}
	}
	return start
}

// next returns another event.
func (s *seconds) next() *pageSecond {
	event := &pageSecond{
		Time: time.Now(), Zones: []adminapi.Zone{}, Stores: []adminapi.Store{}, Adaptive: adaptive.Running(),
	}
	if s.n%keysPulse == 0 {
		s.keys = running.KeyCounts(s.stores...)
	}
	s.n++
	for _, z := range s.zones {
		described := z.Show(s.keys)
		add(&described, s.view)
		event.Zones = append(event.Zones, described)
	}
	for _, of := range s.stores {
		event.Stores = append(event.Stores, of.Show(s.keys))
	}
	event.Instances, event.Top = s.view.Instances(), s.tops()
	return event
}

// tops returns the keys that were refused most of the next zones in turn.
func (s *seconds) tops() (tops []adminapi.Top) {
	for range min(maxTops, len(s.zones)) {
		z := s.zones[s.turn%len(s.zones)]
		tops = append(tops, z.Top(s.view, topKeys, topk.Refused))
		s.turn++
	}
	return tops
}

// endpointOf returns the address of the admin endpoint that a request has come to, as the command line
// takes it.
func endpointOf(r *http.Request) string {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	if local.Network() == "unix" {
		return "unix/" + local.String()
	}
	return local.String()
}

// pagePath is the path of the page and its files, below that of the admin API.
const pagePath = "page/"

// servePage answers with a file of the page.
func servePage(c *adminCall) (any, error) {
	_, name, _ := strings.Cut(c.request.URL.Path, "/"+pagePath)
	return nil, page.Serve(c.ResponseWriter, c.request, name)
}
