package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// mutation is a small change of a zone, in all handlers that have it: a zone must be alike in all of them.
type mutation struct {
	zone, words string
	edits       []edit
}

// edit is a change of a value in one handler. It becomes nil if it goes.
type edit struct {
	put     func(any)
	was, is any
}

func (m *mutation) String() string { return "zone " + m.zone + ":" + m.words }

// Mutate changes a config a little, one change at a time, and finds out whether a case notices. All cases must hold
// without a change. One that does not load is left out, because nobody can make it by mistake.
func Mutate(text []byte, files []*File) (tried []Change, err error) {
	var parsed any
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	all := mutationsOf(parsed)
	accepted, err := acceptedOf(files, all)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		for _, e := range m.edits {
			e.put(e.is)
		}
		changed, _ := json.Marshal(parsed) // cannot fail: it comes from JSON
		for _, e := range m.edits {
			e.put(e.was)
		}
		alone, err := offline.Provision(changed)
		if err != nil {
			continue
		}
		tried = append(tried, Change{Change: m.String(), Accepted: accepted[m.String()], FoundBy: failing(alone, files)})
		alone.Release()
	}
	return tried, nil
}

// failing returns the name of the first case that fails; empty if none does.
func failing(alone *offline.Config, files []*File) string {
	for _, f := range files {
		for _, c := range f.Cases {
			if len(carryOut(alone, f, c, false)) > 0 {
				return c.Name
			}
		}
	}
	return ""
}

// acceptedOf returns the reasons of the changes that files accept. It is an error to accept what is no change of the
// config: it is misspelled, or the config has changed since, so that its reason may not hold any longer.
func acceptedOf(files []*File, all mutations) (map[string]string, error) {
	reasons := make(map[string]string)
	var changes []string
	for _, m := range all {
		changes = append(changes, m.String())
	}
	for _, f := range files {
		for _, a := range f.Accepts {
			if !slices.Contains(changes, a.Change) {
				return nil, fmt.Errorf("accept %q is no change of the config%s (--mutate --json lists all), at %s:%d",
					a.Change, suggest.Hint(a.Change, changes), f.Name, a.Line)
			}
			reasons[a.Change] = a.Reason
		}
	}
	return reasons, nil
}

// mutationsOf returns the changes of a config that are tried, sorted by zone.
func mutationsOf(config any) (all mutations) {
	offline.EachHandler(config, func(handler string, h map[string]any) {
		if zones, ok := h["rate_limits"].(object); ok && handler == "rate_limit" {
			for name, z := range zones {
				put := putter(zones, name)
				all.add(name, " removed", edit{put, z, nil})
				all.within(name, "", z, put)
			}
		}
	})
	slices.SortStableFunc(all, func(a, b *mutation) int { return strings.Compare(a.zone, b.zone) })
	return all
}

// object is an object of a config.
type object = map[string]any

// putter puts a member into an object. One that becomes nil goes.
func putter(into object, name string) func(any) {
	return func(value any) {
		if into[name] = value; value == nil {
			delete(into, name)
		}
	}
}

// mutations are changes, each of which was added once for each handler that has its zone.
type mutations []*mutation

func (all *mutations) add(zone, words string, e edit) {
	i := slices.IndexFunc(*all, func(m *mutation) bool { return m.zone == zone && m.words == words })
	if i < 0 {
		i, *all = len(*all), append(*all, &mutation{zone: zone, words: words})
	}
	(*all)[i].edits = append((*all)[i].edits, e)
}

// within adds the changes of a value and of its members. The words lead to its option.
func (all *mutations) within(zone, words string, value any, put func(any)) {
	change := func(to string, is any) { all.add(zone, words+to, edit{put, value, is}) }
	switch value := value.(type) {
	case bool:
		change(fmt.Sprintf(" %t -> %t", value, !value), !value)
	case float64:
		otherNumbers(lastWord(words), value, change)
	case string:
		otherTexts(lastWord(words), value, change)
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name == "lend" { // which has no effect here
				continue
			}
			put, is := putter(value, name), value[name]
			if _, isSwitch := is.(bool); len(value) > 1 && !isSwitch {
				all.add(zone, words+" "+name+" removed", edit{put, is, nil})
			}
			all.within(zone, words+" "+name, is, put)
		}
	case []any:
		for i, one := range value {
			at, without := "", slices.Delete(slices.Clone(value), i, i+1)
			if _, inside := one.(object); inside && len(value) > 1 {
				at = " " + strconv.Itoa(i+1)
				change(at+" removed", without)
			} else if len(value) > 1 {
				change(fmt.Sprint(" without ", one), without)
			}
			all.within(zone, words+at, one, func(is any) { value[i] = is })
		}
	}
}

func lastWord(words string) string { return words[strings.LastIndexByte(words, ' ')+1:] }

// otherNumbers yields the changes of a number: one more, one less; of a time, twice as long, and half.
func otherNumbers(option string, n float64, yield func(words string, changed any)) {
	if n <= 0 || option == "enforce" { // one percent more shows only with many keys
		return
	}
	others, written := []float64{n + 1, n - 1}, func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	if slices.Contains(config.Durations, option) {
		others, written = []float64{2 * n, n / 2}, func(n float64) string { return duration.Format(time.Duration(n)) }
	}
	for _, other := range others {
		yield(" "+written(n)+" -> "+written(other), other)
	}
}

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// otherTexts yields the changes of a text: another word, another time, or a placeholder less.
func otherTexts(name, text string, yield func(words string, changed any)) {
	for _, f := range option.Fields(reflect.TypeFor[config.Zone]()) {
		if i := slices.Index(f.Words, text); f.JSON == name && i >= 0 {
			other := f.Words[(i+1)%len(f.Words)]
			yield(" "+text+" -> "+other, other)
		}
	}
	if d, err := option.ParseDuration(text); err == nil {
		otherNumbers(config.Durations[0], float64(d), yield)
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
