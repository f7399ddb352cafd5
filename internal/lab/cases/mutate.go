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

// mutation is a small change of a zone.
type mutation struct{ zone, words string }

func (m mutation) String() string { return "zone " + m.zone + ":" + m.words }

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
	for _, m := range all {
		changed, err := m.apply(config)
		if err != nil {
			return nil, err
		}
		e, err := newEngine(changed)
		if err != nil {
			continue
		}
		c := Change{Change: m.String(), Accepted: accepted[m.String()]}
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
	for _, m := range all {
		changes = append(changes, m.String())
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

// mutationsOf returns the changes of a config that are tried.
func mutationsOf(config []byte) (all []mutation, err error) {
	_, err = editZones(config, func(name string, z object) any {
		changesOfZone(z, func(words string, _ any) {
			if m := (mutation{name, words}); !slices.Contains(all, m) {
				all = append(all, m)
			}
		})
		return z
	})
	slices.SortStableFunc(all, func(a, b mutation) int { return strings.Compare(a.zone, b.zone) })
	return all, err
}

// apply returns the config with the change in all uses of its zone: a zone that several handlers have must be alike in
// all of them.
func (m mutation) apply(config []byte) ([]byte, error) {
	return editZones(config, func(name string, z object) (made any) {
		made = z
		if name == m.zone {
			changesOfZone(z, func(words string, changed any) {
				if words == m.words {
					made = changed
				}
			})
		}
		return made
	})
}

// object is an object of a config.
type object = map[string]any

// editZones returns a config with other zones. One that becomes nil goes.
func editZones(config []byte, edit func(name string, z object) any) ([]byte, error) {
	var parsed any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	offline.EachHandler(parsed, func(handler string, h map[string]any) {
		zones, _ := h["rate_limits"].(object)
		for name, z := range zones {
			if z, ok := z.(object); ok && handler == "rate_limit" {
				set(zones, name, edit(name, z))
			}
		}
	})
	return json.Marshal(parsed)
}

// set sets a member of an object, which goes if it is nil.
func set(of object, name string, value any) object {
	if of[name] = value; value == nil {
		delete(of, name)
	}
	return of
}

// changesOfZone yields the changes of a zone: each in words, with the zone as it becomes, which is nil if it goes.
func changesOfZone(z object, yield func(words string, changed any)) {
	yield(" removed", nil)
	if z["algorithm"] == nil && z["max_events"] != nil { // the default
		yield(" algorithm sliding_window_log -> token_bucket", set(maps.Clone(z), "algorithm", "token_bucket"))
	}
	changes("", z, yield)
}

// changes yields the changes of the value of an option, and of what is in it.
func changes(option string, value any, yield func(words string, changed any)) {
	switch value := value.(type) {
	case bool:
		yield(fmt.Sprintf(" %t -> %t", value, !value), !value)
	case float64:
		otherNumbers(option, value, yield)
	case string:
		otherTexts(option, value, yield)
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name == "lend" { // which has no effect here
				continue
			}
			if _, isSwitch := value[name].(bool); len(value) > 1 && !isSwitch {
				yield(" "+name+" removed", set(maps.Clone(value), name, nil))
			}
			changes(name, value[name], func(words string, changed any) {
				yield(" "+name+words, set(maps.Clone(value), name, changed))
			})
		}
	case []any:
		for i, one := range value {
			at := ""
			without := slices.Delete(slices.Clone(value), i, i+1)
			if _, inside := one.(object); inside && len(value) > 1 {
				at = " " + strconv.Itoa(i+1)
				yield(at+" removed", without)
			} else if len(value) > 1 {
				yield(fmt.Sprint(" without ", one), without)
			}
			changes("", one, func(words string, changed any) {
				yield(at+words, slices.Concat(value[:i], []any{changed}, value[i+1:]))
			})
		}
	}
}

// durations are the options that are a time, in nanoseconds.
var durations = []string{"window", "max_wait", "lease", "duration", "up_to"}

// otherNumbers yields the changes of a number: one more, one less; of a time, twice as long, and half.
func otherNumbers(option string, n float64, yield func(words string, changed any)) {
	if n <= 0 || option == "enforce" { // one percent more shows only with many keys
		return
	}
	others, written := []float64{n + 1, n - 1}, func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	if slices.Contains(durations, option) {
		others, written = []float64{2 * n, n / 2}, func(n float64) string { return duration.Format(time.Duration(n)) }
	}
	for _, other := range others {
		yield(" "+written(n)+" -> "+written(other), other)
	}
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

// otherTexts yields the changes of a text: another word, another time, or a placeholder less.
func otherTexts(name, text string, yield func(words string, changed any)) {
	if other := otherWords[text]; other != "" {
		yield(" "+text+" -> "+other, other)
		return
	}
	if d, err := option.ParseDuration(text); err == nil && slices.Contains(durations, name) {
		otherNumbers(name, float64(d), yield)
		return
	}
	for _, part := range placeholders.FindAllString(text, -1) {
		left := strings.TrimSpace(strings.Replace(text, part, "", 1))
		if n, err := strconv.ParseFloat(left, 64); err == nil {
			yield(" without "+part, n)
		} else if left != "" { // else its option is removed as a whole
			yield(" without "+part, left)
		}
	}
}
