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
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/why"
)

// keyView is a key as `get` shows it.
type keyView struct {
	*adminapi.Key
	named bool // sentences name the key, because there are several
}

// used returns what is used of the quota, and how much of that is a debt.
func (k keyView) used() string {
	text := fmt.Sprintf("%d of %d", k.Used, k.Quota)
	if k.Owed > 0 {
		text += fmt.Sprintf(" (%d owed)", k.Owed)
	}
	return text
}

// remaining returns what is left, with the unit if a request costs more than 1.
func (k keyView) remaining() string {
	left := strconv.FormatInt(k.Remaining, 10)
	switch {
	case k.CostFrom != "":
		return fmt.Sprintf("%s units; a request costs {%s}, here %d", left, k.CostFrom, k.Cost)
	case k.Cost > 1:
		return fmt.Sprintf("%s units, for %s of %d each", left, plural(k.Remaining/k.Cost, "request"), k.Cost)
	}
	return left
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// byPlan returns a view for each plan of the zone, or the key itself without plans.
func (k keyView) byPlan() []keyView {
	if len(k.Plans) == 0 {
		return []keyView{k}
	}
	views := make([]keyView, len(k.Plans))
	for i, plan := range k.Plans {
		of := *k.Key
		of.Plan, of.KeyState, of.Plans = plan.Plan, plan.KeyState, []adminapi.PlanStatus{plan}
		views[i] = keyView{&of, k.named}
	}
	return views
}

// planName returns the name of the plan that the numbers are for.
func (k keyView) planName() string {
	switch {
	case len(k.Plans) != 1:
		return showPlan(k.Plan)
	case k.Plan == "":
		return "(default)"
	case k.Plans[0].Default:
		return shell.Word(k.Plan) + " (default)"
	}
	return shell.Word(k.Plan)
}

// numbers returns the cells of a table: state, used, remaining, more in.
func (k keyView) numbers() []string {
	if len(k.Plans) == 1 && k.Plans[0].Unlimited {
		return []string{"unlimited", "-", "-", "-"}
	}
	more := "-"
	if k.NextAfter > 0 && !k.Slots { // slots come back when requests end
		more = formatSeconds(k.NextAfter)
	}
	return []string{words(k.Outcome), k.used(), k.remaining(), more}
}

// whichPlan says where the plan of a request comes from.
func (k keyView) whichPlan() string {
	text := "The plan of a request is " + k.PlanFrom + "; "
	if k.NoPlan != 0 {
		return text + fmt.Sprintf("requests with none of these plans get status %d.", k.NoPlan)
	}
	return text + "requests with none of these plans get the default."
}

// plansWithoutOverride returns the plans under which the limit of the key's own does not hold.
func (k keyView) plansWithoutOverride() (names []string) {
	for _, plan := range k.Plans {
		if plan.Elsewhere {
			names = append(names, shell.Word(plan.Plan))
		}
	}
	return names
}

// enumerate returns one name or several, behind what they are.
func enumerate(what string, names []string) string {
	if len(names) > 1 {
		what += "s"
	}
	return what + " " + strings.Join(names, ", ")
}

// worthReason reports whether to say more about the key, if the zone was not named.
func (k keyView) worthReason() bool {
	return k.BlockedAddress != "" || slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
		return k.Refused || len(k.Commands) > 0 || k.Outcome == outcome.Names[outcome.DryRun]
	})
}

// printReasons prints why keys are allowed or refused, under each plan, and which commands change that. It says only once what
// is the same for several of them.
func (s *screen) printReasons(keys []keyView) {
	var reasons, commands []string
	for _, k := range keys {
		for _, view := range k.worthReasons(keys) {
			if text := view.why(); !slices.Contains(reasons, text) {
				reasons, commands = append(reasons, text), append(commands, s.commands(view.Commands))
			}
		}
	}
	for i, text := range reasons {
		fmt.Fprintln(s.out, "\n"+text)
		if i+1 == len(reasons) || commands[i+1] != commands[i] { // else once for both
			fmt.Fprint(s.out, commands[i])
		}
	}
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

// why says why the zone allows or refuses the key, with the name of the key if there are several.
func (k keyView) why() string {
	text := local(k.Why)
	if k.named {
		text = strings.Replace(text, "this key", shell.ShowKey(k.KeyText), 1)
	}
	return text
}

// beforeFlags matches what is before the flags that name an instance, in a command of the admin API.
var beforeFlags = regexp.MustCompile(`^caddy( rate-limit \S+( --(clear|exempt|outcome rejected))?)`)

// commands says what to run here.
func (s *screen) commands(all []adminapi.Command) (text string) {
	for i, c := range all {
		between := ":\n  "
		if i > 0 {
			between = ": "
		}
		lines := make([]string, len(c.Run))
		for n, line := range c.Run {
			lines[n] = beforeFlags.ReplaceAllStringFunc(line, func(before string) string {
				return shell.Word(os.Args[0]) + strings.TrimPrefix(before, "caddy") + s.flags
			})
		}
		text += "To " + c.To + between + strings.Join(lines, " && ") + "\n"
	}
	return text
}

// worthReasons returns the views of a key whose reasons are worth printing, beside those of these other
// keys: those that refuse the key, if there are any in the zone.
func (k keyView) worthReasons(keys []keyView) []keyView {
	refuses := slices.ContainsFunc(keys, func(other keyView) bool {
		return other.Zone == k.Zone && slices.ContainsFunc(other.byPlan(), func(view keyView) bool { return view.Refused })
	})
	return slices.DeleteFunc(k.byPlan(), func(view keyView) bool {
		return len(view.Plans) == 1 && view.Plans[0].Unlimited || refuses && !view.Refused
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

// formatDeadline returns a time, given in seconds from now.
func formatDeadline(seconds float64) string {
	at, layout := time.Now().Add(time.Duration(seconds*float64(time.Second))), time.TimeOnly
	if at.YearDay() != time.Now().YearDay() || seconds > 24*3600 {
		layout = time.DateTime
	}
	return at.Format(layout) + " (in " + formatSeconds(seconds) + ")"
}
