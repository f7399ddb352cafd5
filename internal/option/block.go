// Package option reads blocks of the Caddyfile: known options, each once, and no secret in an
// error.
package option

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Option is an option of a block. It may stand once, unless it repeats.
type Option struct {
	Parse     Parser
	Label     string // in the error about a second one; the name if empty
	Repeats   bool
	Forbidden string // why it may not stand here, and what to write instead
}

// Block reads a block of known options.
func Block(d *caddyfile.Dispenser, what, prefix string, known map[string]Option) error {
	seen := make(map[string]string)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		o, ok := known[name]
		before, twice := seen[name]
		switch {
		case !ok:
			accepted, hint := Accepted(known), ""
			if similar := suggest.Nearest(name, accepted); similar != "" {
				hint = " (did you mean '" + similar + "'?)"
			}
			return d.Errf("unknown option of %s: '%s'%s, must be one of %s", what, Shown(name), hint, strings.Join(accepted, ", "))
		case o.Forbidden != "":
			return d.Err(o.Forbidden)
		case twice && !o.Repeats:
			text := prefix + cmp.Or(o.Label, name) + " already specified"
			if before != "" {
				text += ": " + before
			}
			return d.Err(text)
		}
		arguments, err := o.Parse()
		if err != nil {
			return err
		}
		seen[name] = arguments
	}
	return nil
}

// Accepted are the names of the options that may stand in a block.
func Accepted(known map[string]Option) []string {
	names := slices.Sorted(maps.Keys(known))
	return slices.DeleteFunc(names, func(name string) bool { return known[name].Forbidden != "" })
}

// OnlyBlock is for options whose only argument is a block. What stands before it may be
// a password that was meant for the block, so the error does not show it.
func OnlyBlock(d *caddyfile.Dispenser, what string) error {
	if d.NextArg() {
		return d.Errf("%s takes its options in a block", what)
	}
	return nil
}
