package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/shell"
)

// keyHelp is the help for keys, for all commands that take one.
const keyHelp = `
The key is what distinguishes the zone's clients: paste it from 'caddy rate-limit
top', or write it as a request would send it. If the zone makes keys from several
placeholders, give the value of each as a separate argument. A zone without a
key takes none. --key-base64 takes a key of any bytes. A key that begins with a
hyphen goes after --.
`

// changeCommand completes a command that changes a key by one request to the admin API. The flags,
// which may be nil, make the body of that request. With show, the command shows the key afterwards.
func changeCommand(cmd *cobra.Command, method, path string, flags func(*cobra.Command) func() map[string]any, show bool) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = needsZone, completeZones
	query := keyFlags(cmd)
	body := func() any { return nil }
	if flags != nil {
		read := flags(cmd)
		body = func() any { return read() }
	}
	cmd.RunE = onFleet(func(f *fleet, args []string) error {
		q, err := query(args[1:])
		if err != nil {
			return err
		}
		return f.changeKey(method, args[0], path, q, body(), show)
	})
	return cmd
}

// changeKey sends the request that changes a key. With show it then shows the key.
func (f *fleet) changeKey(method, zone, path string, query url.Values, body any, show bool) error {
	var reset adminapi.Reset
	text, err := f.asked.fetch(method, zonePath(zone, path), query, body, &reset)
	if err != nil {
		return err
	}
	switch {
	case reset.Warning != "" && f.several:
		fmt.Fprintln(f.err, "Warning: "+f.asked.address+": "+reset.Warning)
	case reset.Warning != "":
		fmt.Fprintln(f.err, "Warning: "+reset.Warning)
	}
	switch {
	case f.json && show && reset.Network == "":
		if text, err = f.asked.fetch(http.MethodGet, zonePath(zone, "/key"), query, nil, new(adminapi.Key)); err != nil {
			fmt.Fprintln(f.err, notShown, err)
		}
		fallthrough
	case f.json:
		_, err := f.out.Write(text)
		return err
	case f.several:
		fmt.Fprintln(f.out, map[bool]string{false: "done", true: "nothing has changed"}[reset.Unchanged])
		return nil
	case reset.Network != "":
		if !reset.Unchanged {
			fmt.Fprintf(f.out, "%s network %s in zone %s, at all instances within 5 seconds.\n",
				map[bool]string{true: "It holds for", false: "It has ended for"}[method == http.MethodPut], reset.Network, shell.Word(zone))
		}
		return nil
	case !show:
		if !reset.Unchanged {
			fmt.Fprintf(f.out, "Reset %s in zone %s.\n", cmp.Or(shell.Words(slices.Concat(query["part"], query["key"], query["key_base64"])), "(no key)"), shell.Word(zone))
		}
		return nil
	}
	keys := fetchAll[adminapi.Key](f, zonePath(zone, "/key"), query)
	if err := f.showKey(keys); err != nil {
		fmt.Fprintln(f.err, notShown, err)
	}
	if k := &keys[0].value; method == http.MethodPut && keys[0].err == nil && k.Lately == nil && k.Used == 0 {
		fmt.Fprintf(f.out, "\nNo request had this key lately. If one should have, compare the spelling with 'caddy rate-limit top%s %s'.\n", f.flags, shell.Word(zone))
	}
	return nil
}

const notShown = "The change is made, but the key cannot be shown:"

// keyFlags adds the flags that name a key. It returns a function that makes a query from these flags
// and from arguments.
func keyFlags(cmd *cobra.Command) func(args []string) (url.Values, error) {
	encoded := cmd.Flags().String("key-base64", "", "The key in base64")
	return func(args []string) (url.Values, error) {
		isEncoded := cmd.Flags().Changed("key-base64")
		switch {
		case isEncoded && len(args) > 0:
			return nil, errors.New("give the key as an argument or with --key-base64, not both")
		case isEncoded:
			return url.Values{"key_base64": {*encoded}}, nil
		case len(args) == 1:
			return url.Values{"key": args}, nil
		}
		return url.Values{"part": args}, nil
	}
}

// validityFlags adds the flags that say how long an override holds, and why. It returns a function
// that makes the first fields of a body from them.
func validityFlags(cmd *cobra.Command) func() map[string]any {
	flags := cmd.Flags()
	duration := new(longFlag)
	flags.Var(duration, "for", "How long it holds, such as 90s, 2h or 7d; without this, until it is cleared")
	note := flags.String("note", "", "A note for people, which 'caddy rate-limit get' shows")
	return func() map[string]any {
		body := make(map[string]any)
		if flags.Changed("for") {
			body["for"] = duration.String()
		}
		if *note != "" {
			body["note"] = *note
		}
		return body
	}
}
