// Package lua embeds the scripts that run inside Redis: the Lua ports of the algorithms, and
// take.lua, which decides the checks of a call with them.
//
// A call has one of two forms. counters.lua only charges, and Go computes the decisions from the states
// before; most calls ask only about counters, and the whole fleet waits for the interpreter in Redis.
// groups.lua decides and computes everything: the same check costs Redis 1.7 times as much, and 1.9
// times in calls of 16.
package lua

import _ "embed"

// Take is the main script. It reads the time, runs the algorithm of each check, and writes
// all charges of a group or none. Package redisstore inserts the other scripts.
//
//go:embed take.lua
var Take string

// Plain is the part of Take for calls that ask one Counter the same for each key.
//
//go:embed plain.lua
var Plain string

// Counters is the part of Take for other calls that only Counters decide.
//
//go:embed counters.lua
var Counters string

// Groups is the part of Take for all other calls.
//
//go:embed groups.lua
var Groups string

// Careful is the part of Take and Lend that finds out whether Redis can write.
//
//go:embed careful.lua
var Careful string

// WrongType is the part of Take and Lend that tells keys of another type from errors.
//
//go:embed wrongtype.lua
var WrongType string

// Write is the part of Take that writes the state of a Counter.
//
//go:embed write.lua
var Write string

// Lend is the script of zones that lend.
//
//go:embed lend.lua
var Lend string

// Loans is the part of Lend that keeps the book of loans.
//
//go:embed loans.lua
var Loans string

// MulDiv is a function that the ports may use; redisstore adds it to those that do.
//
//go:embed muldiv.lua
var MulDiv string

// Ban is the Lua port of store/ban.go.
//
//go:embed ban.lua
var Ban string

// Override is the part of Take for overrides with a limit.
//
//go:embed override.lua
var Override string

// The Lua ports of the algorithms. Each sets the functions that take.lua describes for
// Counters, Recorders and Lenders.
var (
	//go:embed bucket.lua
	Bucket string

	//go:embed fixed_window.lua
	FixedWindow string

	//go:embed sliding_window_log.lua
	SlidingWindowLog string

	//go:embed sliding_window_counter.lua
	SlidingWindowCounter string

	//go:embed concurrency.lua
	Concurrency string
)
