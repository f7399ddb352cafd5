package cli

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/explain"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

func explainCommand(cmd *cobra.Command) {
	flags := cmd.Flags()
	var wanted adminapi.Request
	flags.StringVarP(&wanted.Method, "request", "X", "", "The method (GET, or POST with a body)")
	flags.StringArrayVarP(&wanted.Header, "header", "H", nil, "A header, as 'Name: value'; may be repeated")
	data := flags.StringP("data", "d", "", "The body")
	flags.StringVar(&wanted.From, "from", "", "The address from which the request comes (127.0.0.1); @ for a Unix socket")
	flags.StringVar(&wanted.Server, "server", "", "The name of the server that gets it, if that is not clear from the port")
	flags.StringToStringVar(&wanted.Assume, "assume", nil, "A placeholder that only a real request has, as 'http.auth.user.id=alice'; may be repeated")
	isOffline := flags.Bool("offline", false, "Read the config file instead of asking a running Caddy")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted.URL = args[0]
		if strings.HasPrefix(*data, "@") {
			return fmt.Errorf("-d %s: write the body itself, as in -d \"$(cat file)\"", *data)
		}
		if wanted.Body = []byte(*data); cmd.Flags().Changed("data") {
			describeData(&wanted)
		}
		if *isOffline {
			return explainOffline(cmd, &wanted)
		}
		c, err := newInstance(cmd)
		if err != nil {
			return err
		}
		x := new(adminapi.Explanation)
		if _, err := c.fetch(http.MethodPost, "explain", nil, &wanted, x); err != nil {
			return err
		}
		return c.printExplanation(x)
	}
}

// describeData makes a request with a body what curl makes of it.
func describeData(r *adminapi.Request) {
	r.Method = cmp.Or(r.Method, http.MethodPost)
	hasType := func(field string) bool { return strings.HasPrefix(strings.ToLower(field), "content-type:") }
	if !slices.ContainsFunc(r.Header, hasType) {
		r.Header = append(r.Header, "Content-Type: application/x-www-form-urlencoded")
	}
}

// explainOffline prints what a config that does not run would make of a request.
func explainOffline(cmd *cobra.Command, wanted *adminapi.Request) error {
	config, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	alone, err := offline.Provision(config)
	if err != nil {
		return err
	}
	defer alone.Release()
	answer, err := explain.Explain(cmd.Context(), alone.App, alone.Handler, wanted)
	if err != nil {
		return err
	}
	for _, v := range answer.Zones {
		if v.State != nil {
			v.State.Commands = nil // they are for a Caddy that runs
		}
	}
	return newScreen(cmd).printExplanation(answer)
}

// printExplanation prints what is decided on a request, its way, and its zones.
func (s *screen) printExplanation(x *adminapi.Explanation) error {
	if s.json {
		return s.printJSON(x)
	}
	s.say("%s", conclusion(x))
	fmt.Fprintln(s.out)
	client := cmp.Or(x.ClientIP, "-")
	if connection, _, err := net.SplitHostPort(x.From); err != nil || connection != x.ClientIP {
		client += inParentheses("connection from " + x.From)
	}
	rows := [][]string{
		{"request", x.Method + " " + shell.Word(x.URL)},
		{"client", client},
		{"server", x.Server + inParentheses(strings.Join(x.Listen, " "))},
	}
	s.details(append(rows, routeRows(x.Steps)...))
	if len(x.Zones) > 0 {
		fmt.Fprintln(s.out)
		s.table(visitRows(x.Zones))
	}
	for i := range x.Zones {
		s.printVisit(x, &x.Zones[i])
	}
	return nil
}

// add prints a text after an empty line.
func (s *screen) add(text string) { fmt.Fprintf(s.out, "\n%s\n", say.Printable(text)) }

// routeRows returns a row for each route, with the handlers that the request meets there.
func routeRows(steps []adminapi.Step) (rows [][]string) {
	between := ""
	for _, s := range steps {
		switch {
		case s.Handler != "" && len(rows) == 0:
			rows = append(rows, []string{"", ""})
			fallthrough
		case s.Handler != "":
			rows[len(rows)-1][1] += between + s.Handler + inParentheses(s.Note)
			between = ", "
		case !s.Taken:
			rows, between = append(rows, []string{"route " + s.Route, "not taken, " + adminapi.NoneMatches(s.Misses)}), ", "
		default:
			rows, between = append(rows, []string{"route " + s.Route, cmp.Or(s.Match, "all requests")}), ": "
		}
	}
	return rows
}

// visitRows returns the table of the zones that a request meets.
func visitRows(visits []adminapi.Visit) [][]string {
	rows := [][]string{stateHeader}
	for _, v := range visits {
		if v.State != nil {
			rows = append(rows, stateRows(*v.State)...)
			continue
		}
		state := words(v.Outcome)
		switch {
		case !v.Met && len(v.Misses) > 0:
			state = "no match"
		case !v.Met:
			state = "not met"
		}
		rows = append(rows, []string{shell.Word(v.Zone), "", state, "", "", "", ""})
	}
	return rows
}

// printVisit says why a zone counts a request, or refuses it.
func (s *screen) printVisit(x *adminapi.Explanation, v *adminapi.Visit) {
	zone := "Zone " + shell.Word(v.Zone)
	if v.State == nil || v.Reason != "" {
		// If error routes answer, the caller gets another status.
		if why := v.Why(x.GRPCStatus == 0); why != "" {
			s.add(zone + " " + why + ".")
		}
		return
	}
	if v.Wait > 0 {
		s.add(zone + " holds it for " + duration.Seconds(v.Wait) + ".")
	}
	if o := v.State.Outcome; o != outcome.Names[outcome.Allowed] && o != outcome.Names[outcome.NotCharged] {
		s.add(local(v.State.Why))
	}
	fmt.Fprint(s.out, s.commands(v.State.Commands))
}

// conclusion says what is decided on the request.
func conclusion(x *adminapi.Explanation) string {
	refused := fmt.Sprintf("It is refused with status %d", x.Status)
	if x.GRPCStatus != 0 {
		refused += fmt.Sprintf(" and grpc-status %d", x.GRPCStatus)
	}
	switch {
	case x.Outcome == adminapi.NotLimited:
		return "No limit applies to it: " + x.Reason + "."
	case x.Outcome == adminapi.Failed:
		return fmt.Sprintf("It is refused with status %d before any limit: %s.", x.Status, x.Reason)
	case x.Passes && x.Status != 0:
		return fmt.Sprintf("All limits allow it. Then it is refused with status %d: %s.", x.Status, x.Reason)
	case x.Passes && x.Wait > 0:
		return "It is allowed, after " + duration.Seconds(x.Wait) + "."
	case x.Passes && x.Outcome == outcome.Names[outcome.Allowed]:
		return "It is allowed."
	case x.Passes:
		return "It is allowed, because the store does not answer (" + x.Outcome + ")."
	case x.Never:
		return refused + ", and always will be."
	case x.RetryAfter > 0:
		return refused + ", until " + formatDeadline(x.RetryAfter) + "."
	}
	return refused + "."
}
