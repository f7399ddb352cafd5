// Package lua embeds the scripts that run inside Redis: one twin for each algorithm
// and take.lua, which decides the checks of a call with them.
package lua

import _ "embed"

// Take is the frame: it reads the time, runs each check's algorithm and writes all of
// a group or nothing. redisstore fills in the twins.
//
//go:embed take.lua
var Take string

// The twins. Each is the body of a function without arguments that returns the
// algorithm: one function for a Counter, two for a Recorder. take.lua says how they
// are called and what is in their scope.
var (
	//go:embed token_bucket.lua
	TokenBucket string

	//go:embed fixed_window.lua
	FixedWindow string

	//go:embed sliding_window_log.lua
	SlidingWindowLog string
)
