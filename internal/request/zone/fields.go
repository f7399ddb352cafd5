package zone

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/body"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// sides are the matcher sets of an option: those that look at no field, what the others look at besides fields, and all of them.
type sides struct{ sure, rest, all caddyhttp.MatcherSets }

// ask asks the matchers; before the body is read, those that look at no field. Then it may be open what the others say.
func (s *sides) ask(c *Check, r *http.Request) (matches, open bool, err error) {
	if c.read {
		matches, err = clientip.MatchAny(s.all, r)
		return matches, false, err
	}
	if matches, err = clientip.MatchAny(s.sure, r); err == nil && !matches {
		open, err = clientip.MatchAny(s.rest, r)
		c.open = c.open || open
	}
	return matches, open, err
}

// findFields sets which fields of bodies the zone looks at.
func (z *Zone) findFields() (err error) {
	paths := z.fieldsOfTexts()
	z.readsAll = len(paths) > 0
	z.matching, paths = divide(z.MatcherSetsRaw, z.Matchers, paths)
	z.exempting, paths = divide(z.ExemptRaw, z.Exempt, paths)
	z.blocking, paths = divide(z.BlockRaw, z.Block, paths)
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) == 0 {
		return nil
	}
	if z.fields, err = usage.ParseTexts(paths); err != nil {
		return fmt.Errorf("{%s<path>}: %w", placeholder.JSONPrefix, err)
	}
	return nil
}

// fieldsOfTexts returns the fields in options that are texts or numbers.
func (z *Zone) fieldsOfTexts() (paths []string) {
	paths = z.Template.Fields()
	if z.PlanTemplate != nil {
		paths = append(paths, z.PlanTemplate.Fields()...)
	}
	path, ofBody := strings.CutPrefix(z.Cost.From, placeholder.JSONPrefix)
	if z.costOfBody = ofBody; ofBody {
		paths = append(paths, path)
	}
	return paths
}

// fieldIn finds the fields in the JSON of matchers.
var fieldIn = regexp.MustCompile(regexp.QuoteMeta(placeholder.JSONPrefix) + "([^}\"'`\\\\\\s]*)")

// FieldsIn returns the fields of bodies in the JSON of a matcher.
func FieldsIn(raw json.RawMessage) (paths []string) {
	var value any
	if json.Unmarshal(raw, &value) == nil {
		raw, _ = json.Marshal(value) // without escapes of letters
	}
	for _, found := range fieldIn.FindAllSubmatch(raw, -1) {
		paths = append(paths, string(found[1]))
	}
	return paths
}

// divide divides the matchers of an option, which are loaded from raw ones, and adds the fields that they look at to others.
func divide(raw caddyhttp.RawMatcherSets, loaded caddyhttp.MatcherSets, others []string) (s sides, paths []string) {
	paths, s.all = others, loaded
	if len(raw) != len(loaded) { // they were made without a config
		return sides{sure: loaded, all: loaded}, paths
	}
	for i, set := range loaded {
		looks := make(map[string]bool)
		for name, matcher := range raw[i] {
			if found := FieldsIn(matcher); len(found) > 0 {
				paths, looks[name] = append(paths, found...), true
			}
		}
		if len(looks) == 0 {
			s.sure = append(s.sure, set)
			continue
		}
		s.rest = append(s.rest, slices.DeleteFunc(slices.Clone(set), func(matcher any) bool {
			id := matcher.(caddy.Module).CaddyModule().ID
			return looks[strings.TrimPrefix(string(id), "http.matchers.")]
		}))
	}
	return s, paths
}

// readFields reads the fields of a request, and gives their placeholders values. They have none if the body cannot be read.
func (z *Zone) readFields(r *placeholder.Request) *body.Refusal {
	text, refusal := body.ReadJSON(r.Request)
	var values []string
	if refusal == nil {
		var err error
		if values, err = z.fields.Read(text); err != nil {
			refusal = &body.Refusal{Status: http.StatusBadRequest, Err: err}
		}
	}
	for i, path := range z.fields.Paths() {
		if refusal != nil {
			r.Replacer().Delete(placeholder.JSONPrefix + path)
		} else {
			r.Replacer().Set(placeholder.JSONPrefix+path, values[i])
		}
	}
	return refusal
}
