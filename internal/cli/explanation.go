package cli

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

// This file has the texts of `explain`.

// printExplanation prints what is decided on a request, its way, and its zones; with --json, the
// answer as it came.
func (s *screen) printExplanation(x *adminapi.Explanation, answered []byte) error {
	if s.json {
		_, err := s.out.Write(answered)
		return err
	}
	for _, line := range wrapped(printable(conclusion(x)), cmp.Or(s.width, textWidth)) {
		fmt.Fprintln(s.out, line)
	}
	fmt.Fprintln(s.out)
	rows := [][]string{
		{"request", x.Method + " " + shell.Word(x.URL)},
		{"client", describeClient(x)},
		{"server", x.Server + inParentheses(strings.Join(x.Listen, " "))},
	}
	s.paragraphs(append(rows, routeRows(x.Steps)...))
	if len(x.Zones) > 0 {
		fmt.Fprintln(s.out)
		if err := s.table(zoneRows(x.Zones)); err != nil {
			return err
		}
		if rows := limitRows(x.Zones); len(rows) > 0 {
			fmt.Fprintln(s.out)
			s.paragraphs(rows)
		}
	}
	for _, step := range x.Steps {
		if step.Effect == "assumed" {
			s.say("%s %s.", step.Handler, step.Note)
		}
	}
	for i := range x.Zones {
		s.printVisit(x, &x.Zones[i])
	}
	return nil
}

// say prints a sentence after an empty line.
func (s *screen) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", printable(fmt.Sprintf(format, args...)))
}

// paragraphs prints rows of a name and a text like details, but wraps the texts at the width of the
// terminal.
func (s *screen) paragraphs(rows [][]string) {
	names := widths(rows)[0]
	for _, row := range rows {
		lines := []string{printable(row[1])}
		if s.width > 0 {
			lines = wrapped(lines[0], s.width-names-len(columnGap))
		}
		name := printable(row[0])
		for _, line := range lines {
			fmt.Fprintf(s.out, "%-*s%s%s\n", names, name, columnGap, line)
			name = ""
		}
	}
}

// describeClient says whose address the client's is.
func describeClient(x *adminapi.Explanation) string {
	connection, _, err := net.SplitHostPort(x.From)
	if err != nil {
		connection = x.From
	}
	switch {
	case x.ClientIP == connection:
		return connection
	case x.TrustedProxy:
		return fmt.Sprintf("%s, by the trusted proxy %s", x.ClientIP, connection)
	}
	return orDash(x.ClientIP) + inParentheses("connection from "+connection)
}

// routeRows returns a row for each route, with the handlers that the request meets there.
func routeRows(steps []adminapi.Step) (rows [][]string) {
	for _, s := range steps {
		if s.Handler != "" {
			text := s.Handler
			if s.Note != "" && s.Effect != "assumed" {
				text += inParentheses(s.Note)
			}
			if len(rows) == 0 {
				rows = append(rows, []string{"", text})
				continue
			}
			last := rows[len(rows)-1]
			if strings.HasSuffix(last[1], ": ") {
				last[1] += text
			} else {
				last[1] += ", " + text
			}
			continue
		}
		switch {
		case s.Group: // after another one was taken
		case !s.Taken:
			rows = append(rows, []string{"route " + s.Route, "not taken, " + adminapi.NoneMatches(s.Misses)})
		case s.Match == "":
			rows = append(rows, []string{"route " + s.Route, "all requests: "})
		default:
			rows = append(rows, []string{"route " + s.Route, s.Match + ": "})
		}
	}
	for _, row := range rows {
		row[1] = strings.TrimSuffix(row[1], ": ")
	}
	return rows
}

// zoneRows returns the table of the zones that a request meets.
func zoneRows(visits []adminapi.Visit) [][]string {
	withPlans := slices.ContainsFunc(visits, func(v adminapi.Visit) bool { return v.State != nil && v.State.Plan != "" })
	rows := [][]string{{"ZONE", planColumn, "STATE", "USED", "LEFT", "MORE IN", keyColumn}}
	for _, v := range visits {
		if v.State == nil {
			rows = append(rows, []string{shell.Word(v.Zone), "-", visitState(&v), "-", "-", "-", "-"})
			continue
		}
		k := keyView{Key: v.State}
		rows = append(rows, slices.Concat([]string{shell.Word(v.Zone), k.planName()}, k.numbers(), []string{shell.ShowKey(k.KeyText)}))
	}
	return only(map[string]bool{planColumn: withPlans}, rows)
}

// limitRows says which limit, cost and key each zone has for the request.
func limitRows(visits []adminapi.Visit) (rows [][]string) {
	for _, v := range visits {
		if v.State == nil {
			continue
		}
		text := v.State.Limit + inParentheses(v.State.Rollout)
		if v.State.Override != nil {
			text += ", override " + describeOverride(v.State.Override)
		}
		if v.State.Cost != 1 {
			text += fmt.Sprintf(", cost %d", v.State.Cost)
		}
		for i, p := range v.Placeholders {
			text += map[bool]string{true: ", key ", false: " "}[i == 0] + "{" + p.Name + "} " + shell.Word(p.Value)
		}
		rows = append(rows, []string{shell.Word(v.Zone), text})
	}
	return rows
}

// visitState returns the outcome in a zone whose store is not asked.
func visitState(v *adminapi.Visit) string {
	switch {
	case !v.Met && len(v.Misses) > 0:
		return "no match"
	case !v.Met:
		return "not met"
	}
	return words(v.Outcome)
}

// printVisit says why a zone counts a request, or refuses it.
func (s *screen) printVisit(x *adminapi.Explanation, v *adminapi.Visit) {
	zone := "Zone " + shell.Word(v.Zone)
	switch {
	case v.State != nil && v.Reason == "":
		k := keyView{Key: v.State}
		if v.Wait > 0 {
			s.say("%s holds it for %s.", zone, formatSeconds(v.Wait))
		}
		if k.Outcome != outcome.Names[outcome.Allowed] && k.Outcome != outcome.Names[outcome.NotCharged] {
			s.say("%s", k.why())
		}
		fmt.Fprint(s.out, s.commands(k.Commands))
	default:
		// If error routes answer, the caller gets another status.
		if why := v.Why(refusedWith(x) == statusText(x.Status)); why != "" {
			s.say("%s %s.", zone, why)
		}
	}
}

// conclusion says what is decided on the request.
func conclusion(x *adminapi.Explanation) string {
	switch {
	case x.Outcome == adminapi.NotLimited:
		return "No limit applies to it: " + x.Reason + "."
	case x.Outcome == adminapi.Failed:
		return fmt.Sprintf("It is refused with status %d before any limit: %s.", x.Status, x.Reason)
	case x.Passes && x.Status != 0:
		return fmt.Sprintf("All limits allow it. Then it is refused with status %d: %s.", x.Status, x.Reason)
	case x.Passes && x.Wait > 0:
		return "It is allowed, after " + formatSeconds(x.Wait) + "."
	case x.Passes && x.Outcome == outcome.Names[outcome.Allowed]:
		return "It is allowed."
	case x.Passes:
		return "It is allowed, because the store does not answer (" + x.Outcome + ")."
	case x.Never:
		return fmt.Sprintf("It is refused with %s, and always will be.", refusedWith(x))
	case x.RetryAfter > 0:
		return fmt.Sprintf("It is refused with %s, until %s.", refusedWith(x), formatDeadline(x.RetryAfter))
	}
	return fmt.Sprintf("It is refused with %s.", refusedWith(x))
}

// refusedWith says what the caller gets of a refusal.
func refusedWith(x *adminapi.Explanation) string {
	if x.GRPCStatus != 0 {
		return fmt.Sprintf("%s and grpc-status %d", statusText(x.Status), x.GRPCStatus)
	}
	return statusText(x.Status)
}

func statusText(status int) string { return fmt.Sprintf("status %d", status) }
