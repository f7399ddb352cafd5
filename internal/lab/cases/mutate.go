package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// object is an object of a config.
type object = map[string]any

// mutation is a small change of a zone: what is at the end of a way of names and places gets another value, or goes if
// that is nil.
type mutation struct {
	change string // in words
	way    []any
	value  any
}

// Mutate changes a config a little, one change at a time, and finds out whether a case notices. All cases must hold
// without a change. One that does not load is left out, because nobody can make it by mistake.
func Mutate(config []byte, files []*File, o *Options) (tried []Change, err error) {
	all, err := mutationsOf(config)
	if err != nil {
		return nil, err
	}
	accepted, err := acceptedOf(files, all)
	if err != nil {
		return nil, err
	}
	for i := range all {
		changed, err := all[i].apply(config)
		if err != nil {
			return nil, err
		}
		e, err := newEngine(changed)
		if err != nil {
			continue
		}
		c := Change{Change: all[i].change, Accepted: accepted[all[i].change]}
		for f, of := range o.cases(files) {
			if len(e.carryOut(f, of, false)) > 0 {
				c.FoundBy = of.Name
				break
			}
		}
		e.Release()
		if o.Tried != nil {
			o.Tried(c)
		}
		tried = append(tried, c)
	}
	return tried, nil
}

// acceptedOf returns the reasons of the changes that files accept. It is an error to accept what is no change of the
// config: it is misspelled, or the config has changed since, so that its reason may not hold any longer.
func acceptedOf(files []*File, all []mutation) (map[string]string, error) {
	reasons := make(map[string]string)
	var changes []string
	for i := range all {
		changes = append(changes, all[i].change)
	}
	for _, f := range files {
		for _, a := range f.Accepts {
			if !slices.Contains(changes, a.Change) {
				return nil, fmt.Errorf("accept %q is no change of the config%s, --mutate --verbose prints them, at %s:%d",
					a.Change, suggest.Hint(a.Change, changes), f.Name, a.Line)
			}
			reasons[a.Change] = a.Reason
		}
	}
	return reasons, nil
}

// mutationsOf returns the changes of a config that are tried. A zone that several handlers have is changed in all of
// them, because their limits must be alike.
func mutationsOf(config []byte) (all []mutation, err error) {
	var parsed any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	zones := make(map[string][]mutation)
	eachZone(parsed, func(_ object, name string, z object) {
		m := []mutation{{"zone " + name + ": removed", []any{name}, nil}}
		if z["algorithm"] == nil && z["max_events"] != nil { // the default
			m = append(m, mutation{"zone " + name + ": algorithm sliding_window_log -> token_bucket", []any{name, "algorithm"}, "token_bucket"})
		}
		for _, more := range append(m, mutations("zone "+name+":", []any{name}, z)...) {
			if !slices.ContainsFunc(zones[name], func(of mutation) bool { return of.change == more.change }) {
				zones[name] = append(zones[name], more)
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		all = append(all, zones[name]...)
	}
	return all, nil
}

// eachZone calls a function with each zone of a config, and with those of its handler.
func eachZone(config any, f func(of object, name string, z object)) {
	offline.EachHandler(config, func(handler string, h map[string]any) {
		zones, _ := h["rate_limits"].(object)
		for name, z := range zones {
			if z, ok := z.(object); ok && handler == "rate_limit" {
				f(zones, name, z)
			}
		}
	})
}

// apply returns the config with the change in all uses of its zone.
func (m *mutation) apply(config []byte) ([]byte, error) {
	var parsed any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	eachZone(parsed, func(zones object, name string, _ object) {
		if name == m.way[0] {
			edited(zones, m.way, m.value)
		}
	})
	return json.Marshal(parsed)
}

// edited returns a value with a change at the end of a way. What has no such way stays.
func edited(of any, way []any, to any) any {
	if len(way) == 0 {
		return to
	}
	switch of := of.(type) {
	case object:
		name, _ := way[0].(string)
		if of[name] = edited(of[name], way[1:], to); of[name] == nil {
			delete(of, name)
		}
	case []any:
		i, _ := way[0].(int)
		if i >= len(of) {
			break
		}
		if of[i] = edited(of[i], way[1:], to); of[i] == nil {
			return slices.Delete(of, i, i+1)
		}
	}
	return of
}

// mutations returns the changes of a value, and of what is in it.
func mutations(words string, way []any, value any) (all []mutation) {
	set := func(from, to string, value any) {
		all = append(all, mutation{words + " " + from + " -> " + to, way, value})
	}
	to := func(step any) []any { return append(slices.Clip(way), step) }
	switch value := value.(type) {
	case bool:
		set(strconv.FormatBool(value), strconv.FormatBool(!value), !value)
	case float64:
		return numberMutations(words, way, value)
	case string:
		return textMutations(words, way, value)
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name == "lend" { // which has no effect here
				continue
			}
			if _, isSwitch := value[name].(bool); len(value) > 1 && !isSwitch {
				all = append(all, mutation{words + " " + name + " removed", to(name), nil})
			}
			all = append(all, mutations(words+" "+name, to(name), value[name])...)
		}
	case []any:
		for i := range value {
			at := words
			if _, inside := value[i].(object); inside && len(value) > 1 {
				at += " " + strconv.Itoa(i+1)
				all = append(all, mutation{at + " removed", to(i), nil})
			} else if len(value) > 1 {
				all = append(all, mutation{fmt.Sprint(words, " without ", value[i]), to(i), nil})
			}
			all = append(all, mutations(at, to(i), value[i])...)
		}
	}
	return all
}

// durations are the options that are a time, in nanoseconds.
var durations = []any{"window", "max_wait", "lease", "duration"}

// numberMutations returns the changes of a number: one more, one less; of a time, twice as long, and half.
func numberMutations(words string, way []any, n float64) (all []mutation) {
	option := way[len(way)-1]
	isTime := slices.Contains(durations, option)
	others := []float64{n + 1, n - 1}
	if isTime {
		others = []float64{2 * n, n / 2}
	}
	for _, other := range others {
		from, to := strconv.FormatFloat(n, 'f', -1, 64), strconv.FormatFloat(other, 'f', -1, 64)
		if isTime {
			from, to = duration.Format(time.Duration(n)), duration.Format(time.Duration(other))
		}
		if n > 0 && option != "enforce" { // one percent more shows only with many keys
			all = append(all, mutation{words + " " + from + " -> " + to, way, other})
		}
	}
	return all
}

// otherWords take the place of words that options have.
var otherWords = map[string]string{
	"day": "week", "week": "day", "month": "week", "year": "month",
	"smooth": "interval", "interval": "smooth", "meter": "queue", "queue": "meter", "clock": "first_request", "first_request": "clock",
	"allow": "deny", "deny": "allow", "local": "deny",
	"sliding_window_log": "token_bucket", "sliding_window_counter": "token_bucket", "token_bucket": "fixed_window",
	"gcra": "fixed_window", "fixed_window": "sliding_window_log", "leaky_bucket": "fixed_window",
}

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// textMutations returns the changes of a text: another word, another time, or a placeholder less.
func textMutations(words string, way []any, text string) (all []mutation) {
	if other := otherWords[text]; other != "" {
		return []mutation{{words + " " + text + " -> " + other, way, other}}
	}
	if d, err := option.ParseDuration(text); err == nil && slices.Contains(durations, way[len(way)-1]) {
		return numberMutations(words, way, float64(d))
	}
	for _, part := range placeholders.FindAllString(text, -1) {
		var left any = strings.TrimSpace(strings.Replace(text, part, "", 1))
		if left == "" {
			continue // its option is removed as a whole
		}
		if n, err := strconv.ParseFloat(left.(string), 64); err == nil {
			left = n
		}
		all = append(all, mutation{words + " without " + part, way, left})
	}
	return all
}
