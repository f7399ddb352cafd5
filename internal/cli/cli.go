// Package cli has the command caddy rate-limit. It asks the admin API of a running Caddy, and shares
// only package adminapi with it.
package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
Shows what the zones of a running Caddy have decided, their most frequent keys,
the health of the stores, and what a key has used. Resets and bans keys, and gives
them limits of their own. It asks the admin endpoint of that Caddy, which it finds
like 'caddy reload'.

Why is a client refused? 'caddy rate-limit get 203.0.113.7' says why, and which
command lets it through.

Keys are printed as a shell reads them, so that they can be pasted into the next
command. The exit code is 0 on success, and 1 otherwise: also if no zone has an
answer, or with 'stores --check' if a store does not answer.
`,
		CobraFunc: func(cmd *cobra.Command) {
			flags := cmd.PersistentFlags()
			flags.String("address", "", "The address of the admin endpoint, if it is not that of the config")
			flags.StringP("config", "c", "", "Configuration file with the address of the admin endpoint")
			flags.StringP("adapter", "a", "", "Name of the config adapter for that file")
			flags.Bool("json", false, "Print JSON, for programs")
			flags.Bool("wide", false, "Do not cut tables at the width of the terminal")
			flags.Bool("no-color", false, "Use no colors, as with NO_COLOR in the environment")
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.AddCommand(zonesCommand(), topCommand(), getCommand(), resetCommand(), setCommand(), banCommand(), unbanCommand(), bansCommand(), overridesCommand(),
				watchCommand(), storesCommand(), doctorCommand())
		},
	})
}

// endpoint is the admin endpoint of a running Caddy.
type endpoint struct {
	address string
	json    bool
	out     io.Writer
	err     io.Writer
	flags   string // the flags that named it, for a shell
	width   int    // of tables; 0 without a limit
	color   bool
}

// newEndpoint finds the endpoint by the flags of a command.
func newEndpoint(cmd *cobra.Command) (*endpoint, error) {
	flags := cmd.Flags()
	address, _ := flags.GetString("address")
	config, _ := flags.GetString("config")
	adapter, _ := flags.GetString("adapter")
	address, err := adminAddress(address, config, adapter)
	if err != nil {
		return nil, err
	}
	e := &endpoint{address: address, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	e.json, _ = flags.GetBool("json")
	e.fitTerminal(cmd)
	for _, name := range []string{"address", "config", "adapter"} {
		if f := flags.Lookup(name); f != nil && f.Changed {
			e.flags += " --" + name + " " + shellWord(f.Value.String())
		}
	}
	return e, nil
}

// call sends a request to the endpoint, with a JSON body unless that is nil. The path is relative to
// that of the admin API.
func (e *endpoint) call(method, path string, query url.Values, body map[string]any) (*http.Response, error) {
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
	response, err := caddycmd.AdminAPIRequest(e.address, method, adminapi.Path+path, nil, text)
	if err != nil {
		return nil, e.explainError(err)
	}
	return response, nil
}

// change sends a request that changes something, and prints the warning of the answer, if any.
func (e *endpoint) change(method, path string, query url.Values, body map[string]any) error {
	response, err := e.call(method, path, query, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return nil
	}
	var answer adminapi.Reset
	if done, err := e.decode(response.Body, &answer); done || err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.err, "Warning:", answer.Warning)
	return err
}

// apiError is an error in an answer of the admin API.
type apiError struct{ status, text string }

func (c *apiError) Error() string { return c.text }

// explainError adds to an error what can be done about it.
func (e *endpoint) explainError(err error) error {
	status, body, answered := strings.Cut(strings.TrimPrefix(err.Error(), "caddy responded with error: HTTP "), ": ")
	if !answered || status == err.Error() || len(status) != len("404") {
		return fmt.Errorf("%w; is Caddy running, with its admin endpoint at %s? name another with --address or --config",
			err, e.address)
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
	response, err := e.call(http.MethodGet, path, query, nil)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	return e.decode(response.Body, answer)
}

// decode decodes the body of an answer. With --json it also prints the body, and done is true.
func (e *endpoint) decode(body io.Reader, answer any) (done bool, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	if e.json {
		if _, err := e.out.Write(text); err != nil {
			return true, err
		}
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return false, fmt.Errorf("reading the answer: %w; does that Caddy have another version?", err)
	}
	return e.json, nil
}

// zonePath returns the path of a zone in the admin API.
func zonePath(zone, rest string) string { return "zones/" + url.PathEscape(zone) + rest }
