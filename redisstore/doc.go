// Package redisstore keeps all states in a Redis that many instances share. One script
// call decides all checks of a request, on Redis's clock.
//
// # Keys
//
// The state of a zone's key is at
//
//	<key_prefix>:{<key>}:<zone>:<algorithm>.4:<family>
//
// The number is the version of the states: instances whose states have other versions count separately. The
// family is what limits that count together have in common:
//
//	sliding_window_log, sliding_window_counter
//		the window: 1m, 1m30s, 1d
//	fixed_window
//		the window, 1h-first_request for one that begins with a charge,
//		or the calendar and its zone: day-Europe%2FBerlin, month-UTC
//	token_bucket, leaky_bucket
//		the rate: 1per12s for 5/1m, 5per1m-interval if it is refilled at once,
//		1per12s-queue for a queue
//	concurrency
//		none, and no colon before it
//
// Zones with overrides or bans also have
//
//	<key_prefix>:{<key>}:<zone>:setting.1
//	<key_prefix>:{<key>}:<zone>:ban.1
//
// Other keys:
//
//	<key_prefix>:instances
//		the processes that share the store
//	<key_prefix>:report:{<key_prefix>:instances}:<name>
//		for each of them its host, its process, and a digest of each zone's definition; while somebody looks at
//		the fleet also its counts
//	<key_prefix>:looked:{<key_prefix>:instances}
//		until when somebody looks
//	<key_prefix>:probe, in a Cluster <key_prefix>:{<number>}:probe
//		written to check whether Redis works; it lives for a second
//
// # States
//
// A log is a list of charges, of which some may be older than the window. A charge of one event is its time in
// microseconds since 1970. A charge of more events, and the charges behind it, also have two sums: of the events
// beyond one each, before this charge and after it. So 1795014245678901 0 6 is a charge of seven events, and
// 1795014245678955 6 6 is one of one event.
//
// Slots of concurrency are a sorted set with the ends of their leases.
//
// All other states are strings of four big-endian integers of eight bytes and one of four:
//
//	struct.unpack('>i8i8i8i8I4', redis.call('GET', KEYS[1]))
//
// Times are in microseconds. The first three are, for
//
//	token_bucket, leaky_bucket
//		a time when the bucket was full, what was taken since then, the last charge
//	fixed_window
//		when the window began, its count, 0
//	sliding_window_counter
//		the last charge, the count of its window, the count of the previous window
//
// What has come back since the bucket was full is the time since then, times the rate. What was taken may be more
// than fits, because of another limit of the family or a debt. The fourth number is when the state began: what was
// charged before is not in it, so it is not given back. The fifth is the second until which Redis keeps the key:
// nothing else may shorten its expiry.
//
// # Expiries
//
// Every key expires, except overrides that hold until they are cleared. A list or a sorted set expires a second or
// two after it no longer counts. Setting an expiry costs Redis more than a write, so that of a string is up to a
// quarter later than necessary and a few seconds, or half and 18 seconds for a key that has come back.
//
// # Commands
//
// MONITOR shows a call as one EVALSHA with all the keys, a TIME, and a GET, or an MGET for several keys. Each string
// that changes has a SETRANGE, or a SET with EX if it needs a later expiry. Replicas and the AOF get these writes,
// and not the script.
//
// # Clusters
//
// All zones with the same key are in one slot, and are decided there at one moment. If a request meets zones with
// different keys, each slot gets calls of its own. All slots are asked at the same time, and only the first is
// charged, with what can be given back exactly. The others are charged one after the other: keys of clients first,
// then buckets, then zones without a key, and a queue last. If one refuses or does not answer, what was charged is
// given back. In a bucket, what came back by itself meanwhile is not given back twice. If the process dies before,
// the charge stays until it expires.
//
// While a slot moves from one server to another, a client's keys may be on both, so each key is asked separately.
// Overrides and bans are then read a moment before the state.
package redisstore
