// Package option parses blocks of the Caddyfile. It rejects unknown options and options that are
// given twice, and keeps secrets out of errors.
package option

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Option is an option of a block.
type Option struct {
	Parse     Parser
	Label     string // the name in the error about a second one, if it is another
	Repeats   bool   // the option may be given several times
	Forbidden string // why the option is not allowed here, and what to write instead; empty if it is
}

// Block parses a block with these options. In errors, what names the block, and prefix comes before
// the name of an option.
func Block(d *caddyfile.Dispenser, what, prefix string, known map[string]Option) error {
	seen := make(map[string]string)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		o, ok := known[name]
		before, twice := seen[name]
		switch {
		case !ok && wasRemoved(name) != "":
			return d.Errf("%s: %s", what, wasRemoved(name))
		case !ok && len(known) == 0:
			return d.Errf("%s has no options, got '%s'", what, Shown(name))
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

// Accepted returns the names of the options that are allowed in a block, sorted.
func Accepted(known map[string]Option) []string {
	names := slices.Sorted(maps.Keys(known))
	return slices.DeleteFunc(names, func(name string) bool { return known[name].Forbidden != "" })
}

// OnlyBlock returns an error if an option that takes just a block has other arguments. The error
// does not show them, because they may be a password that belongs into the block.
func OnlyBlock(d *caddyfile.Dispenser, what string) error {
	if d.NextArg() {
		return d.Errf("%s takes its options in a block", what)
	}
	return nil
}

// OpensBlock reports whether the next token opens a block, without consuming it.
func OpensBlock(d *caddyfile.Dispenser) bool {
	if !d.Next() {
		return false
	}
	defer d.Prev()
	return d.Val() == "{"
}
