package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store is what is known of a store.
type Store struct {
	adminapi.Store
	Remote bool // it asks a server

	// Err is why a test call failed, of a store that cannot be examined.
	Err error

	// Examined is what the store says of itself; nil if it cannot.
	Examined *store.Examination
}

// node is a server of a store.
type node struct {
	store.Condition
	timeout time.Duration // of a decision; 0 if that is not known
}

// look looks at a store and its servers. What is so because its servers decide nothing is no problem of its own.
func (s *Store) look(e *findings) {
	about := about("store", s.Name)
	if s.Examined != nil {
		for _, c := range s.Examined.Servers {
			before := len(*e)
			look(e, about, nodeProblems, node{c, s.Examined.Timeout})
			for i := before; len(s.Examined.Servers) > 1 && i < len(*e); i++ {
				(*e)[i].Found = c.Address + ": " + (*e)[i].Found
			}
		}
	}
	look(e, about, storeProblems, s)
	look(e, about, silentProblems, s.Silent...)
	if s.Remote && s.Err == nil && !s.some(false) { // else it is known why requests are not decided in time
		look(e, about, sharingProblems, s)
	}
}

// some reports whether some of its servers decide in time, or some do not. One that is full still decides what needs no room.
func (s *Store) some(decide bool) bool {
	return s.Examined != nil && slices.ContainsFunc(s.Examined.Servers, func(c store.Condition) bool {
		return decide == (c.Trouble == store.TroubleMemory || c.Trouble == "" && !node{c, s.Examined.Timeout}.isLate())
	})
}

// Decides reports whether the store decides some requests in time.
func (s *Store) Decides() bool { return s.Err == nil && (s.some(true) || !s.some(false)) }

// decides reports whether the server decides.
func (n node) decides() bool { return n.Trouble == "" }

// isLate reports whether a round trip takes longer than a decision may.
func (n node) isLate() bool { return n.decides() && n.timeout > 0 && n.RoundTrip >= n.timeout }

// apart is by how much its clock differs for sure.
func (n node) apart() time.Duration {
	if !n.decides() || n.ClockTook == 0 {
		return 0
	}
	return max(n.ClockAhead, -n.ClockAhead) - n.ClockTook/2
}

// nearlyFull is the share of memory, or of keys, from which on there is a warning, in percent.
const nearlyFull = 90

var (
	seeServer  = advice.New("doctor/answer", "start the server, or correct its address")
	setClocks  = advice.New("doctor/clock", "set both clocks by NTP")
	giveMemory = advice.New("doctor/memory", "raise maxmemory, or use a Redis only for limits")
)

// nodeProblems are those of a server.
var nodeProblems = []problem[node]{
	{store.TroubleAnswer, fail, func(n node) string {
		return when(n.Trouble == store.TroubleAnswer, "does not answer: %v", n.Err)
	}, seeServer},
	trouble(store.TroubleTLS, advice.New("doctor/tls", "let both sides use TLS, or neither: see the option tls and its ca and server_name")),
	trouble(store.TroubleLogin, advice.New("doctor/login", "correct username and password of the store")),
	trouble(store.TroubleRights, advice.GiveKeys),
	trouble(store.TroubleServer, nil),
	trouble(store.TroubleReplica, advice.New("doctor/replica", "use the address of the master, or mode sentinel or cluster")),

	{"round_trip", fail, func(n node) string {
		return when(n.isLate(),
			"a round trip takes %s, and the timeout is %v: no request is decided in time",
			duration.Short(n.RoundTrip), n.timeout)
	}, advice.New("doctor/round_trip/late", "use a nearer server, or raise timeout")},
	{"round_trip", warn, func(n node) string {
		return when(n.decides() && n.timeout > 0 && 3*n.RoundTrip > n.timeout,
			"a round trip takes %s, more than a third of the timeout of %v", duration.Short(n.RoundTrip), n.timeout)
	}, advice.NearerStore},

	{"clock", warn, func(n node) string {
		return when(n.apart() > time.Second, "its clock is %s this instance's", ahead(n.ClockAhead))
	}, setClocks},

	trouble(store.TroubleMemory, giveMemory),
	{"memory", warn, func(n node) string {
		return when(n.Described && n.MaxMemory == 0, "uses %s, and nothing bounds its memory", humanize.IBytes(uint64(n.Memory)))
	}, advice.New("doctor/memory/bound", "set maxmemory")},
	{"memory", warn, func(n node) string {
		return when(n.Described && n.Memory >= n.MaxMemory/100*nearlyFull,
			"uses %s of %s", humanize.IBytes(uint64(n.Memory)), humanize.IBytes(uint64(n.MaxMemory)))
	}, giveMemory},

	{"eviction", fail, func(n node) string {
		return when(n.Described && n.Evicts != "noeviction" && n.Evicted > 0,
			"has removed %d keys (%s): each frees a client that was refused", n.Evicted, n.Evicts)
	}, advice.NoEviction},
	{"eviction", warn, func(n node) string {
		return when(n.Described && n.Evicts != "noeviction" && n.Evicts != "volatile-ttl",
			"removes keys when its memory is full (%s), which frees clients that are refused", n.Evicts)
	}, advice.NoEviction},
}

// trouble is a reason why a server does not decide.
func trouble(kind string, fix *advice.Advice) problem[node] {
	return problem[node]{kind, fail, func(n node) string { return when(n.Trouble == kind, "cannot decide: %v", n.Err) }, fix}
}

// storeProblems are those of a store, whether its servers decide or not.
var storeProblems = []problem[*Store]{
	{"answer", fail, func(s *Store) string {
		return when(s.Examined == nil && s.Err != nil, "does not answer: %v", s.Err)
	}, seeServer},

	{"busy", warn, func(s *Store) string {
		return when(s.Busy,
			"this Caddy was too busy to ask the store within the last minute, and refused requests with status 503")
	}, advice.New("doctor/busy",
		"give this Caddy more processors, or add instances; the option lend saves calls in zones with busy keys")},

	{"memory", unknown, func(s *Store) string {
		secret := func(c store.Condition) bool { return !c.Described && c.Trouble == "" }
		return when(s.Examined != nil && slices.ContainsFunc(s.Examined.Servers, secret),
			"cannot say how full it is, and what it removes then: the user may not run INFO")
	}, advice.New("doctor/memory/info", "give the user +info as well")},

	{"keys", fail, func(s *Store) string {
		if s.Examined == nil || !s.Examined.Sharing {
			return ""
		}
		return fmt.Sprintf("%d of %d keys: new keys share states, and are refused because of each other", s.Examined.Keys, s.Examined.MaxKeys)
	}, advice.RaiseKeys},
	{"keys", warn, func(s *Store) string {
		if s.Examined == nil || s.Examined.MaxKeys == 0 {
			return ""
		}
		return when(s.Examined.Keys >= s.Examined.MaxKeys/100*nearlyFull,
			"%d of %d keys", s.Examined.Keys, s.Examined.MaxKeys)
	}, advice.RaiseKeys},
}

// silentProblems are about servers that a failover may need.
var silentProblems = []problem[adminapi.SilentServer]{
	{"silent", warn, func(of adminapi.SilentServer) string {
		return fmt.Sprintf("%s has not said for %s where the limits are kept: %s", of.Address, duration.Short(time.Since(of.Since)), of.Error)
	}, advice.New("doctor/silent",
		"see that it runs and knows the master, or take its address out of the config; without such servers a failover may fail")},
}

var countInstances = advice.New("doctor/fleet/instances", "set the option instances to as many, or leave it out, so that the shares follow the fleet")

// sharingProblems are those of a store that several instances use, and whose servers decide in time.
var sharingProblems = []problem[*Store]{
	{"breaker", fail, func(s *Store) string {
		return when(s.Breaker == store.BreakerOpen, "the breaker is open: requests do not ask the store")
	}, advice.New("doctor/breaker",
		"correct what keeps the store from answering; it is asked again within a second after that")},
	{"breaker", warn, func(s *Store) string {
		return when(s.Failing, "calls of requests have failed within the last few seconds")
	}, advice.New("doctor/breaker/failing", "see the log, and errors in 'caddy rate-limit stores --json'")},

	{"waits", warn, func(s *Store) string {
		if s.Latency == nil || s.Examined == nil || s.Latency.Count < enough/10 {
			return ""
		}
		long := s.Latency.P99
		if s.Latency.Count < enough { // a single one may be late
			long = s.Latency.P50
		}
		limit := s.Examined.Timeout
		return when(limit > 0 && 3*long > limit.Seconds(),
			"%d requests of the last minute waited for it: half of them at most %s, 99 %% at most %s; the timeout is %v",
			s.Latency.Count, duration.Seconds(s.Latency.P50), duration.Seconds(s.Latency.P99), limit)
	}, advice.New("doctor/waits",
		"find what slows it down, as "+advice.Docs+"operating.md says; until then, requests wait less with a shorter timeout and on_store_error local")},

	{"fleet", warn, func(s *Store) string {
		n, configured := s.Instances, s.ConfiguredInstances
		return when(configured > 0 && n > configured,
			"instances is %d, but %d instances share the store: while it does not answer, they admit %d/%d of each limit", configured, n, n, configured)
	}, countInstances},
}

// ahead says how far a clock is ahead of another one.
func ahead(d time.Duration) string {
	if d < 0 {
		return duration.Short(-d) + " behind"
	}
	return duration.Short(d) + " ahead of"
}
