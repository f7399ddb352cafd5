// Command caddy is Caddy with its standard modules and the rate limiter.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed-161337e5/caddyratelimit"
)

func main() { caddycmd.Main() }
