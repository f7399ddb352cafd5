package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// instance is a running Caddy that a command asks, and where its answers are printed.
type instance struct {
	*screen
	address string
	ofFleet bool                  // it is asked about its fleet
	view    *adminapi.FleetAnswer // its last answer about the fleet
}

// newInstances finds the instances to ask by the flags of a command.
func newInstances(cmd *cobra.Command) (all []*instance, err error) {
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
		s := newScreen(cmd)
		if config != "" { // its address holds in other directories, too
			given = cmp.Or(given, address)
		}
		if given != "" {
			s.flags = " --address " + shell.Word(given)
		}
		// A program has to say that it asks about the fleet, because that answer has another form.
		fleet := flags.Lookup(fleetFlag)
		ofFleet := fleet != nil && fleet.Value.String() == "true" && (fleet.Changed || !s.json && len(addresses) == 1)
		all = append(all, &instance{screen: s, address: address, ofFleet: ofFleet})
	}
	return all, nil
}

// asks makes a command ask each instance that its flags name, one after the other, and print the answers below their addresses.
func asks(cmd *cobra.Command, do func(c *instance, args []string) error) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := newInstances(cmd)
		switch {
		case err != nil:
			return err
		case len(all) == 1:
			return do(all[0], args)
		}
		return onEach(all, func(c *instance) error { return do(c, args) })
	}
}

// onEach asks several instances. With --json it prints nothing but the answers.
func onEach(all []*instance, do func(*instance) error) error {
	var failed []string
	for _, c := range all {
		out := c.out
		if !c.json {
			fmt.Fprintf(out, "caddy %s\n\n", c.address)
		}
		text, err := c.answer(do)
		fmt.Fprint(out, text)
		if err != nil {
			failed = append(failed, c.address+": "+err.Error())
		}
		switch {
		case c.json:
		case err != nil:
			fmt.Fprint(out, "no answer\n\n")
		default:
			fmt.Fprintln(out)
		}
	}
	if failed == nil {
		return nil
	}
	return fmt.Errorf("%d of %d instances failed:\n  %s", len(failed), len(all), strings.Join(failed, "\n  "))
}

// maxSilence is how long one of several instances may take, so that one that hangs holds up no other for long.
const maxSilence = 20 * time.Second

// answer returns what a command prints about an instance.
func (c *instance) answer(do func(*instance) error) (string, error) {
	text, done := new(strings.Builder), make(chan error, 1)
	c.out = text
	go func() { done <- do(c) }()
	select {
	case err := <-done:
		return text.String(), err
	case <-time.After(maxSilence):
		return "", fmt.Errorf("no answer within %v", maxSilence)
	}
}

// newInstance finds the instance of a command that asks one.
func newInstance(cmd *cobra.Command) (*instance, error) {
	all, err := newInstances(cmd)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("caddy rate-limit %s asks one instance: give one --address, got %d", cmd.Name(), len(all))
	}
	return all[0], nil
}

// call sends a request to the admin endpoint, with a JSON body if its method has one. The path is relative to
// that of the admin API.
func (c *instance) call(method, path string, query url.Values, body any) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var text io.Reader
	if method == http.MethodPut || method == http.MethodPost {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(encoded)
	}
	for tries := 0; ; tries++ {
		response, err := caddycmd.AdminAPIRequest(c.address, method, adminapi.Path+path, nil, text)
		switch {
		case err == nil:
			return response, nil
		case method != http.MethodGet || tries == maxRepeats || !brokenOff.MatchString(err.Error()):
			return nil, c.explainError(err)
		}
	}
}

// maxRepeats is how often a question is asked again whose connection broke off: a reload replaces the endpoint,
// and the one before may have accepted the connection.
const maxRepeats = 2

// brokenOff is an error of such a connection, of which Caddy has only the text.
var brokenOff = regexp.MustCompile(`^performing request: .*(EOF|connection reset by peer|broken pipe|server closed idle connection|use of closed network connection)$`)

// apiError is an error in an answer of the admin API.
type apiError struct{ status, text string }

func (e *apiError) Error() string { return e.text }

// request is what errors begin with when a request gets no answer.
var request = regexp.MustCompile(`^performing request: \w+ "[^"]*": `)

// explainError adds to an error what can be done about it.
func (c *instance) explainError(err error) error {
	status, body, answered := strings.Cut(strings.TrimPrefix(err.Error(), "caddy responded with error: HTTP "), ": ")
	if !answered || status == err.Error() || len(status) != len("404") {
		return fmt.Errorf("%s; is Caddy running, with its admin endpoint at %s? name another with --address or --config",
			request.ReplaceAllString(err.Error(), ""), c.address)
	}
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(body), &answer) == nil && answer.Error != "" {
		return &apiError{status, answer.Error}
	}
	switch status {
	case "404":
		return fmt.Errorf("the Caddy at %s has no rate limiter: was it built with this module?", c.address)
	case "431":
		return fmt.Errorf("the key is longer than the admin endpoint takes, which is about 64 KiB when it is percent-encoded: %w", err)
	}
	return err
}

// fetch sends a request to the endpoint, and decodes the answer, if there is one.
func (c *instance) fetch(method, path string, query url.Values, body, answer any) ([]byte, error) {
	what := "an answer of caddy " + c.address
	if query.Has(fleetFlag) {
		what = "the instances of the fleet: the first reports take up to five seconds"
	}
	defer c.waiting(what)()
	response, err := c.call(method, path, query, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w; does that Caddy have another version?", err)
	}
	return text, nil
}

// ask gets an answer, of the whole fleet if the command is about that. With --json it prints the answer as it came, and done is
// true.
func (c *instance) ask(path string, query url.Values, answer any) (done bool, err error) {
	to := answer
	if c.ofFleet {
		of := url.Values{fleetFlag: {"1"}}
		maps.Copy(of, query)
		query = of
		c.view = &adminapi.FleetAnswer{Sum: answer}
		to = c.view
	}
	text, err := c.fetch(http.MethodGet, path, query, nil, to)
	if err != nil || !c.json {
		return false, err
	}
	_, err = c.out.Write(text)
	return true, err
}

// zonePath returns the path of a zone in the admin API.
func zonePath(zone, rest string) string { return "zones/" + url.PathEscape(zone) + rest }

// This file asks one instance about all that share a store with it.

const fleetFlag = "fleet"

// ofFleet adds the flag of commands that one instance answers for its fleet.
func ofFleet(cmd *cobra.Command) {
	cmd.Flags().Bool(fleetFlag, true, "Answer for all instances that share a store with this one; --fleet=false is for this one only")
}

// counter says whose counts a command shows.
func (c *instance) counter() string {
	if c.view == nil || c.view.Counted < 2 {
		return "this instance"
	}
	return say.Plural(int64(c.view.Counted), "instance")
}

// told is what to say of instances in a state, with their names and how old their reports are.
var told = map[string]string{
	adminapi.StateSilent: "%[1]s has been silent for %[2]s; its counts are of that time.",
	adminapi.StateLeft:   "%[1]s has left; its counts are those of its last report, %[2]s ago.",
	adminapi.StateMute:   "%[1]s does not report: it is not counted.",
}

// printView says below an answer which instances it is about, as far as that is worth a line.
func (c *instance) printView() {
	if c.view == nil {
		return
	}
	for _, m := range c.view.Instances {
		if format := told[m.State]; format != "" {
			c.say(format, m.Name, duration.Seconds(m.Age))
		}
		if len(m.Differs) > 0 {
			c.say("%s has another config: these zones differ: %s.", m.Name, strings.Join(few(m.Differs), ", "))
		}
	}
	c.printNotes()
}

// printNotes says what is missing in the answers of instances.
func (c *instance) printNotes() {
	if c.view == nil {
		return
	}
	for _, note := range c.view.Notes {
		c.say("Note: %s.", note)
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
