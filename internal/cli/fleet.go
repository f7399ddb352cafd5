package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

// fleet is the instances that a command has answers of: the one that it asks, or all that this one knows of.
type fleet struct {
	*screen
	asked   *endpoint
	several bool // addresses are given, each of which is asked
	caddys  []*endpoint

	about    string // what the instance is asked about its fleet; empty: nothing
	view     *adminapi.FleetAnswer
	viewText json.RawMessage // as it came
}

// newFleets finds the instances to ask by the flags of a command.
func newFleets(cmd *cobra.Command) (all []*fleet, err error) {
	flags := cmd.Flags()
	addresses, _ := flags.GetStringSlice("address")
	config, _ := flags.GetString("config")
	adapter, _ := flags.GetString("adapter")
	if len(addresses) == 0 {
		addresses = []string{""}
	}
	for _, given := range addresses {
		given = strings.TrimSpace(given)
		address, err := adminAddress(given, config, adapter)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(f *fleet) bool { return f.asked.address == address }) {
			continue
		}
		s := newScreen(cmd)
		if given != "" {
			s.flags = " --address " + shell.Word(given)
		}
		for _, name := range []string{"config", "adapter"} {
			if flag := flags.Lookup(name); flag != nil && flag.Changed {
				s.flags += " --" + name + " " + shell.Word(flag.Value.String())
			}
		}
		asked := &endpoint{screen: s, address: address}
		all = append(all, &fleet{screen: s, asked: asked, caddys: []*endpoint{asked}})
	}
	for _, f := range all {
		f.several = len(all) > 1
		f.chooseView(cmd)
	}
	return all, nil
}

// newFleet finds the instance of a command that asks one.
func newFleet(cmd *cobra.Command) (*fleet, error) {
	all, err := newFleets(cmd)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("caddy rate-limit %s asks one instance: give one --address, got %d", cmd.Name(), len(all))
	}
	return all[0], nil
}

// onFleet returns what a command does with each instance that its flags name, one after the other.
func onFleet(do func(f *fleet, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		all, err := newFleets(cmd)
		switch {
		case err != nil:
			return err
		case len(all) == 1:
			return do(all[0], args)
		}
		return onEach(newScreen(cmd), all, func(f *fleet) error { return do(f, args) })
	}
}

// maxSilence is how long one of several instances may take to answer.
const maxSilence = 20 * time.Second

// caddyAnswer is an element of the JSON that a command prints for several addresses.
type caddyAnswer struct {
	Address string          `json:"address"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// onEach prints the answer of each instance below its address, or behind that if it is a line. With --json it prints a
// list of them. One that hangs does not hide the answers of the next ones.
func onEach(s *screen, all []*fleet, do func(*fleet) error) error {
	var failed []string
	var list []caddyAnswer
	for i, f := range all {
		answer := caddyAnswer{Address: f.asked.address}
		text, err := f.outputOf(do)
		if text = bytes.TrimSpace(text); s.json && len(text) > 0 {
			answer.Answer = text
		}
		if err != nil {
			answer.Error = err.Error()
			failed = append(failed, answer.Address+": "+answer.Error)
		}
		list = append(list, answer)
		if s.json {
			continue
		}
		if len(text) == 0 {
			text = []byte("no answer")
		}
		between := "\n\n"
		if !bytes.Contains(text, []byte("\n")) {
			between = ": "
		} else if i > 0 {
			fmt.Fprintln(s.out)
		}
		fmt.Fprintf(s.out, "caddy %s%s%s\n", answer.Address, between, text)
	}
	if s.json {
		if err := s.printJSON(list); err != nil {
			return err
		}
	}
	if failed == nil {
		return nil
	}
	return fmt.Errorf("%d of %d instances failed:\n  %s", len(failed), len(all), strings.Join(failed, "\n  "))
}

// outputOf returns what is printed about an instance.
func (f *fleet) outputOf(do func(*fleet) error) ([]byte, error) {
	var text bytes.Buffer
	f.out = &text
	ended := make(chan error, 1)
	go func() { ended <- do(f) }()
	select {
	case err := <-ended:
		return text.Bytes(), err
	case <-time.After(maxSilence):
		return nil, fmt.Errorf("no answer within %s", maxSilence)
	}
}

// isOne reports whether the answer is about one instance.
func (f *fleet) isOne() bool { return len(f.caddys) == 1 }

// answer is the answer of one instance of a fleet, or its error.
type answer[T any] struct {
	of    *endpoint
	value T
	text  json.RawMessage // the answer as it came
	err   error
}

// fetchAll gets the answers of all instances from the one that is asked.
func fetchAll[T any](f *fleet, path string, query url.Values) []answer[T] {
	if f.about != "" {
		if answers, ok := fetchView[T](f, path, query); ok {
			return answers
		}
		f.about = ""
	}
	a := answer[T]{of: f.asked}
	a.text, a.err = f.asked.fetch(http.MethodGet, path, query, nil, &a.value)
	return []answer[T]{a}
}

// answered returns the answers without an error, and the error for the others.
func answered[T any](f *fleet, answers []answer[T]) (good []answer[T], err error) {
	for _, a := range answers {
		switch {
		case a.err == nil:
			good = append(good, a)
		case f.isOne():
			return nil, a.err
		default:
			err = errors.Join(err, fmt.Errorf("%s%w", f.mark(a.of), a.err))
		}
	}
	return good, err
}

// printAnswers prints answers with --json as they came.
func printAnswers[T any](f *fleet, answers []answer[T]) error {
	if !f.json {
		return nil
	}
	text := f.viewText
	if text == nil {
		text = answers[0].text
	}
	_, err := f.out.Write(text)
	return err
}

// mark names an instance of a fleet in front of a sentence.
func (f *fleet) mark(e *endpoint) string {
	if f.isOne() {
		return ""
	}
	return e.address + ": "
}

// The headers of columns that only some tables have: the addresses of instances, and plans.
const caddyColumn, planColumn = "CADDY", "PLAN"

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
