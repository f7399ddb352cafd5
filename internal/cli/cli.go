// Package cli has the command caddy rate-limit. It asks the admin API of a running Caddy, or tries out a config that does
// not run.
package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "rate-limit",
		Usage: "<command>",
		Short: "Shows and changes what a running Caddy limits",
		Long: `
Shows what a running Caddy limits, and why, and changes it for single keys. It asks the
admin endpoint of that Caddy, and finds it by the Caddyfile in the working directory, as
'caddy reload' does.

Keys are printed as a shell reads them, so that they can be pasted into the next
command. The exit code is 0 on success, and 1 otherwise, for example if no zone has
an answer. doctor, test and diff have more exit codes.
`,
		CobraFunc: func(cmd *cobra.Command) {
			flags := cmd.PersistentFlags()
			flags.StringSlice("address", nil, "The address of the admin endpoint, if not the one in the config; several, with commas, are asked one after the other")
			flags.StringP("config", "c", "", "Configuration file with the address of the admin endpoint")
			flags.StringP("adapter", "a", "", "Name of the config adapter for that file")
			flags.Bool("json", false, "Print JSON, for programs")
			// Caddy's own template ends with the address of pages that do not know this command.
			cmd.SetHelpTemplate(cmd.HelpTemplate() + "\nFull documentation is available at:\n" + documentation + "\n")
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, g := range groupsOfCommands() {
				cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ", such as '" + g.example + "':"})
				for _, sub := range g.commands {
					sub.GroupID = g.title
					cmd.AddCommand(sub)
				}
			}
		},
	})
}

// commandGroup is commands for the same purpose.
type commandGroup struct {
	title, example string
	commands       []*cobra.Command
}

// groupsOfCommands returns all commands, by what one wants.
func groupsOfCommands() []commandGroup {
	return []commandGroup{
		{"See what happens", "caddy rate-limit top --refused", []*cobra.Command{
			zonesCommand(), topCommand(), watchCommand(), storesCommand(), instancesCommand(), bansCommand(), overridesCommand(), pageCommand(),
		}},
		{"Find out why", "caddy rate-limit get 203.0.113.7", []*cobra.Command{getCommand(), explainCommand(), doctorCommand()}},
		{"Change what a key may do", "caddy rate-limit set clients 203.0.113.7 500/1m", []*cobra.Command{resetCommand(), setCommand(), banCommand(), unbanCommand()}},
		{"Plan a limit", "caddy rate-limit replay access.log", []*cobra.Command{replayCommand(), diffCommand(), testCommand()}},
	}
}

const documentation = "https://github.com/seed-161337e5/caddyratelimit/blob/main/docs/cli.md"

// endpoint is the admin endpoint of a running Caddy.
type endpoint struct {
	*screen
	address string
}

// call sends a request to the endpoint, with a JSON body unless that is nil. The path is relative to
// that of the admin API.
func (e *endpoint) call(method, path string, query url.Values, body any) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(encoded)
	}
	for tries := 0; ; tries++ {
		response, err := caddycmd.AdminAPIRequest(e.address, method, adminapi.Path+path, nil, text)
		switch {
		case err == nil:
			return response, nil
		case method != http.MethodGet || tries == maxRepeats || !brokenOff.MatchString(err.Error()):
			return nil, e.explainError(err)
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

func (c *apiError) Error() string { return c.text }

// request is what errors begin with when a request gets no answer.
var request = regexp.MustCompile(`^performing request: \w+ "[^"]*": `)

// explainError adds to an error what can be done about it.
func (e *endpoint) explainError(err error) error {
	status, body, answered := strings.Cut(strings.TrimPrefix(err.Error(), "caddy responded with error: HTTP "), ": ")
	if !answered || status == err.Error() || len(status) != len("404") {
		return fmt.Errorf("%s; is Caddy running, with its admin endpoint at %s? name another with --address or --config",
			request.ReplaceAllString(err.Error(), ""), e.address)
	}
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(body), &answer) == nil && answer.Error != "" {
		return &apiError{status, answer.Error}
	}
	switch status {
	case "404":
		return fmt.Errorf("the Caddy at %s has no rate limiter: was it built with this module?", e.address)
	case "431":
		return fmt.Errorf("the key is longer than the admin endpoint takes, which is about 64 KiB when it is percent-encoded: %w", err)
	}
	return err
}

// read gets an answer from the endpoint. With --json it also prints the answer, and done is true.
func (e *endpoint) read(path string, query url.Values, answer any) (done bool, err error) {
	text, err := e.fetch(http.MethodGet, path, query, nil, answer)
	if err != nil || !e.json {
		return false, err
	}
	_, err = e.out.Write(text)
	return true, err
}

// fetch sends a request to the endpoint, and decodes the answer, if there is one.
func (e *endpoint) fetch(method, path string, query url.Values, body, answer any) ([]byte, error) {
	what := "an answer of caddy " + e.address
	if query.Has(fleetFlag) {
		what = "the instances of the fleet: the first reports take up to five seconds"
	}
	defer e.waiting(what)()
	response, err := e.call(method, path, query, body)
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

// zonePath returns the path of a zone in the admin API.
func zonePath(zone, rest string) string { return "zones/" + url.PathEscape(zone) + rest }
