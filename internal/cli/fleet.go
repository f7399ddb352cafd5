package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// fleet is the instances that a command asks, in the order in which --address names them. Usually it is
// one.
type fleet struct {
	*screen
	caddys []*endpoint

	about    string    // what the one instance is asked about its fleet; empty: nothing
	asked    *endpoint // this instance
	view     *adminapi.FleetAnswer
	viewText json.RawMessage // as it came
}

// newFleet finds the instances by the flags of a command.
func newFleet(cmd *cobra.Command) (*fleet, error) {
	flags := cmd.Flags()
	addresses, _ := flags.GetStringSlice("address")
	config, _ := flags.GetString("config")
	adapter, _ := flags.GetString("adapter")
	f := &fleet{screen: newScreen(cmd)}
	if len(addresses) > 0 {
		f.flags = " --address " + shellWord(strings.Join(addresses, ","))
	} else {
		addresses = []string{""}
	}
	for _, name := range []string{"config", "adapter"} {
		if flag := flags.Lookup(name); flag != nil && flag.Changed {
			f.flags += " --" + name + " " + shellWord(flag.Value.String())
		}
	}
	for _, address := range addresses {
		address, err := adminAddress(strings.TrimSpace(address), config, adapter)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(f.caddys, func(e *endpoint) bool { return e.address == address }) { // otherwise it would be counted twice
			f.caddys = append(f.caddys, &endpoint{screen: f.screen, address: address})
		}
	}
	f.chooseView(cmd)
	return f, nil
}

// onFleet returns what a command does with the instances that its flags name.
func onFleet(do func(f *fleet, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		f, err := newFleet(cmd)
		if err != nil {
			return err
		}
		return do(f, args)
	}
}

// isOne reports whether the command asks one instance.
func (f *fleet) isOne() bool { return len(f.caddys) == 1 }

// answer is the answer of one instance of a fleet, or its error.
type answer[T any] struct {
	of    *endpoint
	value T
	text  json.RawMessage // the answer as it came
	err   error
}

// maxSilence is how long a Caddy of a fleet may take to answer.
const maxSilence = 10 * time.Second

// ask asks all instances at once, and returns their answers in order. One that hangs does not hide the
// answers of the others.
func ask[T any](f *fleet, question func(*endpoint) (T, json.RawMessage, error)) []answer[T] {
	answers := make([]answer[T], len(f.caddys))
	pending := make([]chan answer[T], len(f.caddys))
	for i, e := range f.caddys {
		pending[i] = make(chan answer[T], 1)
		go func() {
			value, text, err := question(e)
			pending[i] <- answer[T]{e, value, text, err}
		}()
	}
	var silence <-chan time.Time
	if !f.isOne() {
		silence = time.After(maxSilence)
	}
	for i, e := range f.caddys {
		if silent := !waitFor(pending[i], &answers[i], &silence); silent {
			answers[i] = answer[T]{of: e, err: fmt.Errorf("no answer within %s", maxSilence)}
		}
	}
	return answers
}

// waitFor waits for an answer until silence reports the end of the time, and only looks after that.
func waitFor[T any](pending <-chan T, answer *T, silence *<-chan time.Time) (came bool) {
	select {
	case *answer = <-pending:
		return true
	case <-*silence:
		over := make(chan time.Time)
		close(over)
		*silence = over
	}
	select {
	case *answer = <-pending:
		return true
	default:
		return false
	}
}

// fetchAll gets an answer from each instance, or the answers of a fleet from one.
func fetchAll[T any](f *fleet, path string, query url.Values) []answer[T] {
	if f.about != "" {
		if answers, ok := fetchView[T](f, path, query); ok {
			return answers
		}
		f.about = ""
	}
	return ask(f, func(e *endpoint) (value T, text json.RawMessage, err error) {
		text, err = e.fetch(http.MethodGet, path, query, nil, &value)
		return value, text, err
	})
}

// failures returns the error of a command from those of its instances, in their order.
func (f *fleet) failures(errs []error) error {
	var failed []string
	for i, err := range errs {
		if err == nil {
			continue
		}
		if f.isOne() {
			return err
		}
		failed = append(failed, f.caddys[i].address+": "+err.Error())
	}
	if failed == nil {
		return nil
	}
	err := &fleetError{text: fmt.Sprintf("%d of %d instances failed:\n  %s", len(failed), len(f.caddys), strings.Join(failed, "\n  "))}
	if len(failed) == len(f.caddys) {
		err.all = errs
	}
	return err
}

// fleetError is the error of a command that some instances of a fleet have not carried out.
type fleetError struct {
	text string
	all  []error // of all instances; nil if some of them had no error
}

func (e *fleetError) Error() string   { return e.text }
func (e *fleetError) Unwrap() []error { return e.all }

// answered returns the answers without an error, and the error for the others.
func answered[T any](f *fleet, answers []answer[T]) (good []answer[T], err error) {
	errs := make([]error, len(answers))
	for i, a := range answers {
		if errs[i] = a.err; a.err == nil {
			good = append(good, a)
		}
	}
	return good, f.failures(errs)
}

// caddyAnswer is an element of the JSON that a command prints for a fleet: the answer of one instance.
type caddyAnswer struct {
	Address string          `json:"address"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// printAnswers prints answers with --json: that of one instance as it is, and those of a fleet as a list.
func printAnswers[T any](f *fleet, answers []answer[T]) error {
	if !f.json {
		return nil
	}
	if f.viewText != nil {
		_, err := f.out.Write(f.viewText)
		return err
	}
	if f.isOne() {
		_, err := f.out.Write(answers[0].text)
		return err
	}
	list := make([]caddyAnswer, len(answers))
	for i, a := range answers {
		list[i] = caddyAnswer{Address: a.of.address, Answer: a.text}
		if a.err != nil {
			list[i].Error = a.err.Error()
		}
	}
	return f.printJSON(list)
}

// row returns the cells of a row in a table about several instances: the first one names the instance,
// unless there is just one.
func (f *fleet) row(caddy string, cells ...string) []string {
	if f.isOne() {
		return cells
	}
	return append([]string{caddy}, cells...)
}

// mark names a Caddy of a fleet in front of a sentence.
func (f *fleet) mark(e *endpoint) string {
	if f.isOne() {
		return ""
	}
	return e.address + ": "
}

// shared are values that instances of a fleet have in common, in the order in which they came.
type shared[K comparable, T any] struct {
	all  []*agreed[T]
	byID map[K]*agreed[T]
}

type agreed[T any] struct {
	value T
	of    []*endpoint
}

// add adds the value of a Caddy to the group with this identity. The function merge adds the value to
// that of the group, if there is one.
func (g *shared[K, T]) add(id K, value T, of *endpoint, merge func(to, value *T)) {
	known := g.byID[id]
	if known == nil {
		known = &agreed[T]{value: value}
		if g.byID == nil {
			g.byID = make(map[K]*agreed[T])
		}
		g.byID[id] = known
		g.all = append(g.all, known)
	} else {
		merge(&known.value, &value)
	}
	known.of = append(known.of, of)
}

// differ reports whether some of these instances are missing in a group.
func (g *shared[K, T]) differ(caddys int) bool {
	return slices.ContainsFunc(g.all, func(g *agreed[T]) bool { return len(g.of) < caddys })
}

// The headers of columns that only some tables have: the addresses of instances, and plans.
const caddyColumn, planColumn, slotsColumn = "CADDY", "PLAN", "SLOT TIME"

// everyCaddy names all instances of a fleet.
const everyCaddy = "all"

// names returns the addresses of instances of a fleet, or "all".
func (f *fleet) names(of []*endpoint) string {
	if len(of) == len(f.caddys) {
		return everyCaddy
	}
	names := make([]string, len(of))
	for i, e := range of {
		names[i] = e.address
	}
	return strings.Join(names, " ")
}

// counter says whose counts a command shows.
func (f *fleet) counter(answers int) string {
	if f.isOne() {
		return "this instance"
	}
	return plural(int64(answers), "instance")
}
