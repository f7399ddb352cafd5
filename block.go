package caddyratelimit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// option is an option of a block. It may stand once, unless it repeats.
type option struct {
	parse   parser
	label   string // in the error about a second one; the name if empty
	repeats bool
	refused string // why it may not stand here, and what to write instead
}

// parseBlock reads a block of known options.
func parseBlock(d *caddyfile.Dispenser, what, prefix string, known map[string]option) error {
	seen := make(map[string]string)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		o, ok := known[name]
		before, twice := seen[name]
		switch {
		case !ok:
			return d.Errf("unknown option of %s: '%s', must be one of %s", what, shown(name), strings.Join(accepted(known), ", "))
		case o.refused != "":
			return d.Err(o.refused)
		case twice && !o.repeats:
			text := prefix + cmp.Or(o.label, name) + " already specified"
			if before != "" {
				text += ": " + before
			}
			return d.Err(text)
		}
		arguments, err := o.parse()
		if err != nil {
			return err
		}
		seen[name] = arguments
	}
	return nil
}

// accepted are the names of the options that may stand in a block.
func accepted(known map[string]option) []string {
	names := slices.Sorted(maps.Keys(known))
	return slices.DeleteFunc(names, func(name string) bool { return known[name].refused != "" })
}

// justBlock is for options whose only argument is a block. What stands before it may be
// a password that was meant for the block, so the error does not show it.
func justBlock(d *caddyfile.Dispenser, what string) error {
	if d.NextArg() {
		return d.Errf("%s takes its options in a block", what)
	}
	return nil
}
