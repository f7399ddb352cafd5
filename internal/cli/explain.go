package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
)

func explainCommand(cmd *cobra.Command) {
	cmd.Args = needsURL
	flags := cmd.Flags()
	var wanted adminapi.Request
	flags.StringVarP(&wanted.Method, "request", "X", "", "The method (GET, or POST with a body)")
	flags.StringArrayVarP(&wanted.Header, "header", "H", nil, "A header, as 'Name: value'; may be repeated")
	data := flags.StringP("data", "d", "", "The body")
	flags.StringVar(&wanted.From, "from", "", "The address from which the request comes (127.0.0.1); @ for a Unix socket")
	flags.StringVar(&wanted.Server, "server", "", "The name of the server that gets it, if that is not clear from the port")
	assumed := flags.StringArray("assume", nil, "A placeholder that only a real request has, as 'http.auth.user.id=alice'; may be repeated")
	isOffline := flags.Bool("offline", false, "Read the config file instead of asking a running Caddy")
	asksOne(cmd, func(c *instance, _ []string) error {
		var answer adminapi.Explanation
		answered, err := c.fetch(http.MethodPost, "explain", nil, &wanted, &answer)
		if err != nil {
			return err
		}
		return c.printExplanation(&answer, answered)
	})
	asked := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		wanted.URL = args[0]
		if wanted.Assume, err = parseAssumed(*assumed); err != nil {
			return err
		}
		if strings.HasPrefix(*data, "@") {
			return fmt.Errorf("-d %s: write the body itself, as in -d \"$(cat file)\"", *data)
		}
		if wanted.Body = []byte(*data); cmd.Flags().Changed("data") {
			describeData(&wanted)
		}
		if *isOffline {
			return explainOffline(cmd, &wanted)
		}
		return asked(cmd, args)
	}
}

// needsURL returns an error unless there is one argument.
func needsURL(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return needs("URL", "")(cmd, args)
	case 1:
		return nil
	}
	return fmt.Errorf("there must be one URL, got %d arguments: quote those with spaces", len(args))
}

func parseAssumed(all []string) (map[string]string, error) {
	values := make(map[string]string)
	for _, text := range all {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.Trim(name, "{}"); !ok || name == "" {
			return nil, fmt.Errorf("--assume %q: write it as 'http.auth.user.id=alice'", text)
		}
		values[name] = value
	}
	return values, nil
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
	answer, err := admin.Explain(cmd.Context(), alone.App, alone.Handler, wanted)
	if err != nil {
		return err
	}
	answer.Offline = true
	for _, v := range answer.Zones {
		if v.State != nil {
			v.State.Commands = nil // they are for a Caddy that runs
		}
	}
	s := newScreen(cmd)
	if s.json {
		return s.printJSON(answer)
	}
	return s.printExplanation(answer, nil)
}
