package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

// This file asks one instance about all that share a store with it.

// ofFleet adds the flag of commands that one instance answers for its fleet.
func ofFleet(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool(fleetFlag, true, "Answer for all instances that share a store with this one; --fleet=false is for this one only")
	return cmd
}

const (
	fleetFlag = "fleet"

	// What the admin API is asked: always for the fleet, or if there are other instances.
	askFleet, askIfFleet = "1", "auto"
)

// chooseView finds out by the flags whether the instance is asked about its fleet. Programs have to say so, because their
// answer has another form.
func (f *fleet) chooseView(cmd *cobra.Command) {
	flag := cmd.Flags().Lookup(fleetFlag)
	switch {
	case flag == nil || flag.Value.String() == "false":
	case flag.Changed || cmd.Name() == "instances":
		f.about = askFleet
	case !f.json && !f.several:
		f.about = askIfFleet
	}
}

// fetchView gets the answers of all instances from one. It is false if that knows no fleets.
func fetchView[T any](f *fleet, path string, query url.Values) (answers []answer[T], ok bool) {
	query = maps.Clone(query)
	if query == nil {
		query = make(url.Values)
	}
	query.Set(fleetFlag, f.about)
	var text json.RawMessage
	_, err := f.asked.fetch(http.MethodGet, path, query, nil, &text)
	var refused *apiError
	if errors.As(err, &refused) && refused.status == "400" && strings.Contains(refused.text, strconv.Quote(fleetFlag)) {
		return nil, false // an older one
	}
	if err != nil {
		return []answer[T]{{of: f.asked, err: err}}, true
	}
	view := new(adminapi.FleetAnswer)
	if json.Unmarshal(text, view) != nil || len(view.Instances) == 0 {
		return nil, false
	}
	f.view, f.viewText, f.caddys = view, text, nil
	for i := range view.Instances {
		m := &view.Instances[i]
		if m.Answer == nil {
			continue
		}
		a := answer[T]{of: &endpoint{screen: f.screen, address: inLine(m.Name)}, text: m.Answer}
		if err := json.Unmarshal(m.Answer, &a.value); err != nil {
			a.err = fmt.Errorf("reading the answer: %w; does that Caddy have another version?", err)
		}
		f.caddys, answers = append(f.caddys, a.of), append(answers, a)
	}
	if len(view.Instances) == 1 && len(answers) == 1 {
		f.caddys, answers[0].of = []*endpoint{f.asked}, f.asked
	}
	return answers, true
}

// printView says below an answer which instances it is about, as far as that is worth a line.
func (f *fleet) printView() {
	if f.view == nil || f.json {
		return
	}
	for i := range f.view.Instances {
		m := &f.view.Instances[i]
		name := inLine(m.Name)
		switch m.State {
		case adminapi.StateUnknown:
			f.say("What %s does is not known, because the store does not answer in time; its counts may be missing.", name)
		case adminapi.StateSilent:
			f.say("%s has been silent for %s; its counts are of that time.", name, formatSeconds(m.Age))
		case adminapi.StateLeft:
			f.say("%s has left; its counts are those of its last report, %s ago.", name, formatSeconds(m.Age))
		case adminapi.StateMute:
			f.say("%s does not report: it is not counted.", name)
		}
		if len(m.Differs) > 0 {
			f.say("%s has another config: these zones differ: %s.", name, strings.Join(few(m.Differs), ", "))
		}
	}
	f.printNotes()
}

// printNotes says what is missing in the answers of instances.
func (f *fleet) printNotes() {
	if f.view == nil || f.json {
		return
	}
	for i := range f.view.Instances {
		if m := &f.view.Instances[i]; m.Omitted != "" {
			f.say("%s has no room to report all: %s are missing.", inLine(m.Name), printable(m.Omitted))
		}
	}
	for _, note := range f.view.Notes {
		f.say("Note: %s.", printable(note))
	}
}

// say prints a sentence.
func (f *fleet) say(format string, args ...any) {
	for _, line := range wrapped(fmt.Sprintf(format, args...), cmp.Or(f.width, textWidth)) {
		fmt.Fprintln(f.out, line)
	}
}

// maxNamed bounds the zones that a line names.
const maxNamed = 5

// few returns the first few names, for a shell, and how many more there are.
func few(names []string) (words []string) {
	for _, name := range names[:min(maxNamed, len(names))] {
		words = append(words, shell.Word(name))
	}
	if more := len(names) - maxNamed; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return words
}

func instancesCommand() *cobra.Command {
	return ofFleet(&cobra.Command{
		Use:   "instances",
		Short: "Lists the instances that share a store with this one",
		Long: `
Lists the instances that share a store with this one: whether they report, their version,
for how long they run, the digest of their zones (which differs for another config), their
share of the requests, and how far their clock is ahead of the store's.
`,
		Args: cobra.NoArgs,
		RunE: onFleet(func(f *fleet, _ []string) error { return f.instances() }),
	})
}

// instances prints a line for each instance.
func (f *fleet) instances() error {
	if f.about == "" {
		return errors.New("instances asks about all others: leave out --fleet=false")
	}
	answers, ok := fetchView[json.RawMessage](f, "instances", nil)
	switch {
	case !ok:
		return errors.New("that Caddy has a version without this command")
	case f.view == nil:
		return answers[0].err
	case f.json:
		_, err := f.out.Write(f.viewText)
		return err
	}
	rows := [][]string{{instanceColumn, "STATE", "VERSION", "UP", "CONFIG", "SHARE", "RATE", "CLOCK"}}
	for i := range f.view.Instances {
		m := &f.view.Instances[i]
		row := []string{inLine(m.Name), m.State, "-", "-", "-", "-", "-", "-"}
		if !m.Since.IsZero() {
			row = []string{
				row[0], m.State, inLine(m.Version), formatSeconds(max(0, time.Since(m.Since).Truncate(time.Second).Seconds())), inLine(m.Config),
				fmt.Sprintf("%.0f %%", 100*m.Share), fmt.Sprintf("%.1f/s", m.Rate), fmt.Sprintf("%+.1fs", m.ClockAhead),
			}
		}
		if m.State == adminapi.StateUnknown {
			row[5], row[6], row[7] = "-", "-", "-" // what was once
		}
		rows = append(rows, row)
	}
	if err := f.table(rows); err != nil {
		return err
	}
	if slices.ContainsFunc(f.view.Instances, func(m adminapi.Instance) bool {
		return m.State != adminapi.StateHere && m.State != adminapi.StateReports || len(m.Differs) > 0
	}) || len(f.view.Notes) > 0 {
		fmt.Fprintln(f.out)
		f.printView()
	}
	return nil
}
