package cli

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// keyView is a key in a zone as commands show it.
type keyView struct{ adminapi.Key }

// byPlan returns a view for each plan of the zone, or the key itself without plans.
func (k *keyView) byPlan() []keyView {
	if len(k.Plans) == 0 {
		return []keyView{*k}
	}
	views := make([]keyView, len(k.Plans))
	for i, plan := range k.Plans {
		views[i] = keyView{plan}
	}
	return views
}

// stateHeader is the header of a table of keys.
var stateHeader = []string{"ZONE", "PLAN", "STATE", "USED", "LEFT", "MORE IN", "KEY"}

// printStates prints a table of keys.
func (s *screen) printStates(keys ...keyView) {
	rows := [][]string{stateHeader}
	for _, k := range keys {
		rows = append(rows, k.rows()...)
	}
	s.table(rows)
}

// rows returns the rows of a key in a table: one for each plan.
func (k *keyView) rows() (rows [][]string) {
	if k.Outcome == "" {
		return [][]string{{shell.Word(k.Zone), "", "?", "", "", "", ""}}
	}
	for _, k := range k.byPlan() {
		plan := showPlan(k.Plan)
		if k.Default {
			plan = strings.TrimSpace(plan + " (default)")
		}
		row := []string{shell.Word(k.Zone), plan, "unlimited", "", "", "", shell.ShowKey(k.KeyText)}
		if !k.Unlimited {
			row[2], row[3], row[4] = words(k.Outcome), fmt.Sprintf("%d of %d", k.Used, k.Quota), k.left()
			if k.NextAfter > 0 && !k.Slots { // slots come back when requests end
				row[5] = duration.Seconds(k.NextAfter)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// left returns what is left, with the unit if a request costs more than 1.
func (k *keyView) left() string {
	if k.CostFrom == "" && k.Cost <= 1 {
		return strconv.FormatInt(k.Remaining, 10)
	}
	return fmt.Sprintf("%s; a request costs %d", say.Plural(k.Remaining, "unit"), k.Cost)
}

// own returns the view of the plan that the key had last, or all if that is not known.
func (k *keyView) own() []keyView {
	all := k.byPlan()
	i := slices.IndexFunc(all, func(v keyView) bool { return k.Lately != nil && v.Plan == k.Lately.Plan })
	if i < 0 {
		return all
	}
	return all[i : i+1]
}

// printReasons prints why zones do something else than allow keys, and which commands change that. It names a key
// that is not the only one of its zone, and says only once what is the same for several of them.
func (s *screen) printReasons(keys ...keyView) {
	var printed []string
	for _, k := range keys {
		named := slices.ContainsFunc(keys, func(o keyView) bool { return o.Zone == k.Zone && o.Outcome != "" && o.Key.Key != k.Key.Key })
		for _, k := range k.own() {
			plain := k.Outcome == "" || k.Outcome == outcome.Names[outcome.Allowed] && len(k.Commands) == 0
			if k.Unlimited || plain {
				continue
			}
			text := local(k.Why)
			if named {
				text = strings.Replace(text, "this key", shell.ShowKey(k.KeyText), 1)
			}
			text = "\n" + text + "\n" + s.commands(k.Commands)
			if !slices.Contains(printed, text) {
				printed = append(printed, text)
				fmt.Fprint(s.out, text)
			}
		}
	}
}

// commands says what to run here, in commands of the admin API.
func (s *screen) commands(all []adminapi.Command) (text string) {
	between := ":\n  "
	for _, c := range all {
		lines := make([]string, len(c.Run))
		for i, line := range c.Run {
			lines[i] = shell.Word(os.Args[0]) + " rate-limit" + s.flags + strings.TrimPrefix(line, "caddy rate-limit")
		}
		text += "To " + c.To + between + strings.Join(lines, " && ") + "\n"
		between = ": "
	}
	return text
}

// moment matches a time in a sentence of the admin API.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)

// local returns a text with the times of this place. One that has long passed is in a note.
func local(text string) string {
	return moment.ReplaceAllStringFunc(text, func(at string) string {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil || time.Since(t) > time.Minute {
			return at
		}
		return formatDeadline(time.Until(t).Seconds())
	})
}

// describeOverride returns an override in one line.
func describeOverride(o *adminapi.Override) string {
	text := cmp.Or(o.Limit, o.Kind)
	if o.Network != "" {
		text += " as all of " + o.Network
	}
	if o.Elsewhere {
		text += " for plans with another algorithm,"
	}
	return text + " " + local(why.Validity(o)) + why.Note(o)
}
