package option

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// OpensBlock reports whether the next token opens a block, without consuming it.
func OpensBlock(d *caddyfile.Dispenser) bool {
	if !d.Next() {
		return false
	}
	defer d.Prev()
	return d.Val() == "{"
}
