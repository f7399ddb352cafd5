// Package lua has the scripts that run inside Redis, which it puts together of the parts beside this file: the
// Lua ports of the algorithms, and what decides the checks of a call with them.
//
// The scripts charge, and answer with what there was before, from which Go decides as they did: the whole fleet waits for the
// interpreter in Redis. Only logs and leases, which are too long to send, are decided here. A call of take.lua has one of
// two forms: most calls ask only about counters without key rules, which counters.lua charges, and groups.lua does the rest.
package lua

import "embed"

//go:embed *.lua
var parts embed.FS

// Script is the name of a script, which is that of a part. The parts say what they do, and what comes in and goes out.
type Script string

// The scripts.
const (
	Beat     Script = "beat.lua"
	Get      Script = "get.lua"
	Look     Script = "look.lua"
	Network  Script = "network.lua"
	Networks Script = "networks.lua"
	Set      Script = "set.lua"
	Take     Script = "take.lua"
	Unban    Script = "unban.lua"
)

// whole are all scripts.
var whole = []Script{Beat, Get, Look, Network, Networks, Set, Take, Unban}

// Text returns the script.
func (s Script) Text() string { return texts()[s] }
