// Package lua embeds the scripts that run inside Redis: one twin for each algorithm
// and take.lua, which decides the checks of a call with them.
package lua

import _ "embed"

// Take is the frame: it reads the time, runs each check's algorithm and writes all of
// a group or nothing. redisstore fills in the twins.
//
//go:embed take.lua
var Take string

// Counters is the part of the frame for calls that have only Counters to ask.
//
//go:embed counters.lua
var Counters string

// MulDiv is a function that twins may use; redisstore adds it to those that do.
//
//go:embed muldiv.lua
var MulDiv string

// Ban is the twin of store/ban.go.
//
//go:embed ban.lua
var Ban string

// Own is the part of the frame for keys that have limits of their own.
//
//go:embed own.lua
var Own string

// The twins. Each sets the functions that take.lua says of Counters, Recorders and
// Lenders.
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
