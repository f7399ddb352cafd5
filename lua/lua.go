// Package lua embeds the scripts that run inside Redis. They are made of the parts beside this file: the Lua ports of
// the algorithms, and what decides the checks of a call with them. "make scripts" makes them again after a change.
//
// A call of take.lua has one of two forms. counters.lua only charges, and Go computes the decisions from the states
// before; most calls ask only about counters, and the whole fleet waits for the interpreter in Redis.
// groups.lua decides and computes everything: the same check costs Redis 1.7 times as much, and 1.9
// times in calls of 16.
package lua

import _ "embed"

// The scripts. The parts of the same names say what they do, and what comes in and goes out.
var (
	//go:embed loaded/banned.lua
	Banned string

	//go:embed loaded/beat.lua
	Beat string

	//go:embed loaded/board.lua
	Board string

	//go:embed loaded/change.lua
	Change string

	//go:embed loaded/get.lua
	Get string

	//go:embed loaded/journal.lua
	Journal string

	//go:embed loaded/lend.lua
	Lend string

	//go:embed loaded/network.lua
	Network string

	//go:embed loaded/networks.lua
	Networks string

	//go:embed loaded/set.lua
	Set string

	//go:embed loaded/take.lua
	Take string

	//go:embed loaded/unban.lua
	Unban string
)
