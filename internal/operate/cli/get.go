package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

func getCommand(cmd *cobra.Command) {
	query := keyFlags(cmd)
	asks(cmd, func(c *instance, args []string) error {
		q, err := query(args[min(1, len(args)):])
		switch encoded := q.Has("key_base64"); {
		case err != nil:
			return err
		case len(args) == 0 && !encoded:
			return errors.New("the key is missing: write 'caddy rate-limit get 203.0.113.7' for a key in all zones, " +
				"or 'caddy rate-limit get clients 203.0.113.7' for a key of one zone")
		case len(args) == 0:
			return c.find(q)
		case len(args) == 1 && !encoded && c.hasNoZone(args[0]):
			return c.find(url.Values{"key": args})
		}
		_, err = c.key(args[0], q)
		return err
	})
}

// hasNoZone reports whether the instance has no zone of this name. It asks for the zones, because Caddy logs an error for
// a zone that does not exist.
func (c *instance) hasNoZone(name string) bool {
	var zones []adminapi.Zone
	_, err := c.fetch(http.MethodGet, "zones", nil, nil, &zones)
	return err == nil && !slices.ContainsFunc(zones, func(z adminapi.Zone) bool { return z.Name == name })
}

// key prints a key of a zone.
func (c *instance) key(zone string, query url.Values) (*adminapi.Key, error) {
	k := new(adminapi.Key)
	if done, err := c.ask(zonePath(zone, "/key"), query, k); done || err != nil {
		return k, err
	}
	c.printStates(*k)
	if rows := about(k); len(rows) > 0 {
		fmt.Fprintln(c.out)
		c.details(rows)
	}
	c.printReasons(*k)
	return k, nil
}

// about describes a key, but for the use of its limits.
func about(k *adminapi.Key) (rows [][]string) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("limit", k.Limit+inParentheses(k.Rollout))
	add("assumed", k.Assumed)
	add("plan", k.PlanFrom)
	if r := k.Refusals; r != nil {
		add("refusals", fmt.Sprintf("%d so far; %d in %s lead to a ban", r.Count, r.Of, duration.Seconds(r.Within)))
	}
	if k.Override != nil {
		add("override", describeOverride(k.Override))
		for _, plan := range k.Plans {
			if plan.Override != nil && plan.Override.Elsewhere {
				rows[len(rows)-1][1] += ", not under plan " + shell.Word(plan.Plan)
			}
		}
	}
	if l := k.Lately; l != nil {
		refused := "refused"
		if l.DryRun {
			refused = "would have been refused"
		}
		add("lately", fmt.Sprintf("%s, %d %s (counted by this instance since %s)",
			say.Plural(int64(l.Requests), "request"), l.Refused, refused, l.Since.Local().Format(time.TimeOnly)))
		add("last plan", showPlan(l.Plan))
	}
	return rows
}

// errNoAnswer is the error of a look-up that no zone has an answer to.
var errNoAnswer = errors.New("no zone has an answer for this key")

// find prints a key in the zones that have counted it, or else in all, and why zones refuse it.
func (c *instance) find(query url.Values) error {
	var found []adminapi.Key
	text, err := c.fetch(http.MethodGet, "key", query, nil, &found)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(k adminapi.Key) bool { return k.Error == "" }) {
		err = errNoAnswer
	}
	if c.json {
		_, failed := c.out.Write(text)
		return errors.Join(failed, err)
	}
	shown := slices.DeleteFunc(slices.Clone(found), func(k adminapi.Key) bool { return !isCounted(k) })
	if len(shown) == 0 {
		shown = found
	}
	c.printStates(shown...)
	c.printSilent(found)
	c.printReasons(shown...)
	return err
}

// printSilent says why zones have no answer, or a doubtful one. Each text is printed once with the zones that it is about, such as
// those of one store.
func (c *instance) printSilent(found []adminapi.Key) {
	zones := make(map[string][]string)
	for _, k := range found {
		if k.Error != "" {
			zones[k.Error] = append(zones[k.Error], shell.Word(k.Zone))
		}
	}
	for _, text := range slices.Sorted(maps.Keys(zones)) {
		fmt.Fprintf(c.out, "\n%s: %s.\n", enumerate("Zone", slices.Compact(zones[text])), text)
	}
}

// isCounted reports whether the zone has counted the key, or does something else than allow it.
func isCounted(k adminapi.Key) bool {
	return k.Lately != nil || k.Override != nil || k.Refusals != nil && k.Refusals.Count > 0 ||
		slices.ContainsFunc(byPlan(k), func(k adminapi.Key) bool {
			return !k.Unlimited && k.Outcome != "" && (k.Used > 0 || k.Outcome != outcome.Names[outcome.Allowed])
		})
}

// byPlan returns the key under each plan of the zone, or the key itself without plans.
func byPlan(k adminapi.Key) []adminapi.Key {
	if len(k.Plans) == 0 {
		return []adminapi.Key{k}
	}
	return k.Plans
}

// stateHeader is the header of a table of keys.
var stateHeader = []string{"ZONE", "PLAN", "STATE", "USED", "LEFT", "MORE IN", "KEY"}

// printStates prints a table of keys.
func (s *screen) printStates(keys ...adminapi.Key) {
	rows := [][]string{stateHeader}
	for _, k := range keys {
		rows = append(rows, stateRows(k)...)
	}
	s.table(rows)
}

// stateRows returns the rows of a key in a table: one for each plan.
func stateRows(k adminapi.Key) (rows [][]string) {
	if k.Outcome == "" {
		return [][]string{{shell.Word(k.Zone), "", "?", "", "", "", ""}}
	}
	for _, k := range byPlan(k) {
		plan := showPlan(k.Plan)
		if k.Default {
			plan = strings.TrimSpace(plan + " (default)")
		}
		row := []string{shell.Word(k.Zone), plan, "unlimited", "", "", "", shell.ShowKey(k.KeyText)}
		if !k.Unlimited {
			row[2], row[3], row[4] = words(k.Outcome), fmt.Sprintf("%d of %d", k.Used, k.Quota), left(&k)
			if k.NextAfter > 0 && !k.Slots { // slots come back when requests end
				row[5] = duration.Seconds(k.NextAfter)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// left returns what is left, with the unit if a request costs more than 1.
func left(k *adminapi.Key) string {
	if k.CostFrom == "" && k.Cost <= 1 {
		return strconv.FormatInt(k.Remaining, 10)
	}
	return fmt.Sprintf("%s; a request costs %d", say.Plural(k.Remaining, "unit"), k.Cost)
}

// own returns the key under the plan that it had last, or under all if that is not known.
func own(k adminapi.Key) []adminapi.Key {
	all := byPlan(k)
	i := slices.IndexFunc(all, func(v adminapi.Key) bool { return k.Lately != nil && v.Plan == k.Lately.Plan })
	if i < 0 {
		return all
	}
	return all[i : i+1]
}

// printReasons prints why zones do something else than allow keys, and which commands change that. It names a key
// that is not the only one of its zone, and says only once what is the same for several of them.
func (s *screen) printReasons(keys ...adminapi.Key) {
	var printed []string
	for _, k := range keys {
		named := slices.ContainsFunc(keys, func(o adminapi.Key) bool { return o.Zone == k.Zone && o.Outcome != "" && o.Key != k.Key })
		for _, k := range own(k) {
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
