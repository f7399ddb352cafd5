package doctor

import "github.com/seed-161337e5/caddyratelimit/internal/advice"

// What to do about what is wrong with a server or the config.
var (
	addZone       = advice.New("doctor/zones", "add a rate_limit handler with a zone")
	nameProxies   = advice.New("doctor/client_address/everybody", "name only your proxies in trusted_proxies")
	readFromRight = advice.New("doctor/client_address/strict", "set trusted_proxies_strict, unless your proxy removes the addresses that clients send")
)

// What to do about a zone.
var (
	correctZone = advice.New("doctor/config", "correct the config")

	limitPlans   = advice.New("doctor/limit/unlimited", "give a plan a limit, or remove the zone")
	raiseEvents  = advice.New("doctor/limit/closed", "raise events, or use respond to refuse all requests")
	enforceZone  = advice.New("doctor/rollout", "raise enforce when the figures are right")
	correctMatch = advice.New("doctor/requests", "correct its match, or its route; 'caddy rate-limit explain' shows what a request meets")
	matchMoved   = advice.New("doctor/requests/moved", "match %q, or put rate_limit before the handler that changes the path, for example in a route block")
	moveBefore   = advice.New("doctor/requests/behind", "put rate_limit before %s")
	helpUpstream = advice.New("doctor/upstream", "add capacity behind it, or make its requests cheaper; docs/overload.md")
	partLimit    = advice.New("doctor/upstream/mixed", "give quick and slow requests an adaptive_concurrency each; docs/overload.md")
	narrowExempt = advice.New("doctor/exempt", "narrow exempt; missing_key skip and unlimited plans exempt requests too")
	clearSame    = advice.New("doctor/overrides/same", "clear each with 'caddy rate-limit set --clear'; 'caddy rate-limit overrides' shows them")
	endRules     = advice.New("doctor/overrides", "remove them, or set them again with --for and --note; 'caddy rate-limit overrides' shows them")
	seeRejected  = advice.New("doctor/rejected", "'caddy rate-limit watch --outcome rejected' shows why: block, or no key, plan or valid limit")

	chargeOthers = advice.New("doctor/charge", "name a status or a header of the responses that should be charged; the last response had status %d")
	giveStore    = advice.New("doctor/store", "write the store in the global option rate_limit, which holds for all sites, or write store memory where this is intended")
	varyKey      = advice.New("doctor/keys/one", "choose a key that differs from client to client; 'caddy rate-limit top' shows the keys")
	holdKey      = advice.New("doctor/keys/new", "choose a key that clients cannot change with each request, such as {client_ip}")
	nameKey      = advice.New("doctor/missing_key/nobody", "check the name, and that %s is set before rate_limit runs; until then, set enforce 0, or key {client_ip}")
	skipKeyless  = advice.New("doctor/missing_key", "set missing_key skip, and count these requests in a zone with key {client_ip}")

	seeStore  = advice.New("doctor/on_store_error", "see store %s")
	limitHere = advice.New("doctor/on_store_error/allow", "see store %s; with on_store_error local, the zone would still limit")
	defineOne = advice.New("doctor/agreement", "give it the same limit, key and prefixes everywhere: compare 'caddy rate-limit zones' on each instance")
)

// What to do about the instances of a fleet.
var (
	seeInstance    = advice.New("doctor/instances/silent", "see that it runs and reaches the store; what it has counted is lost if it ends")
	updateInstance = advice.New("doctor/version", "give all instances the same version of this module, and its Redis user the rights that docs/redis.md lists")
	seeNetwork     = advice.New("doctor/outage", "see the way from that instance to the store")
	balance        = advice.New("doctor/load", "see how your load balancer distributes requests, or accept it: with the store, limits are exact all the same")
)

// What to do about a store.
var (
	countInstances = advice.New("doctor/fleet/instances", "remove instances, so that the shares follow the fleet, or set it to %d")

	seeServer    = advice.New("doctor/answer", "see that the server runs, and that the address is right")
	alignTLS     = advice.New("doctor/tls", "let both sides use TLS, or neither: see the option tls and its ca and server_name")
	correctLogin = advice.New("doctor/login", "correct username and password of the store")
	useMaster    = advice.New("doctor/replica", "use the address of the master, or mode sentinel or cluster")
	mendStore    = advice.New("doctor/breaker", "correct what keeps the store from answering; it is asked again within a second after that")
	seeErrors    = advice.New("doctor/breaker/failing", "see the log, and errors in 'caddy rate-limit stores --json'")
	relieve      = advice.New("doctor/busy", "give this Caddy more processors, or add instances; the option lend saves calls in zones with busy keys")
	mendSilent   = advice.New("doctor/silent", "see that it runs and knows the master, or take its address out of the config; without such servers a failover may fail")
	useNearer    = advice.New("doctor/round_trip/late", "use a nearer server, or raise timeout")
	findSlowness = advice.New("doctor/waits", "find what slows it down, as docs/operating.md says; until then, requests wait less with a shorter timeout and on_store_error local")
	setClocks    = advice.New("doctor/clock", "set both clocks by NTP")
	giveInfo     = advice.New("doctor/memory/info", "give the user +info as well")
	giveMemory   = advice.New("doctor/memory", "raise maxmemory, or use a Redis only for limits")
	boundMemory  = advice.New("doctor/memory/bound", "set maxmemory")
)
