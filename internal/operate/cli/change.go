package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
)

func banCommand(cmd *cobra.Command) { changes(cmd, http.MethodPut, "/key/ban", validityFlags(cmd)) }

func unbanCommand(cmd *cobra.Command) { changes(cmd, http.MethodDelete, "/key/ban", nil) }

func resetCommand(cmd *cobra.Command) { changes(cmd, http.MethodDelete, "/key", nil) }

// changes makes a command change a key by one request to the admin API, with a body unless that is nil.
func changes(cmd *cobra.Command, method, path string, body map[string]any) {
	query := keyFlags(cmd)
	asks(cmd, func(c *instance, args []string) error {
		q, err := query(args[1:])
		if err != nil {
			return err
		}
		return c.changeKey(method, args[0], path, q, body)
	})
}

func setCommand(cmd *cobra.Command) {
	query := keyFlags(cmd)
	request := validityFlags(cmd)
	flags := cmd.Flags()
	exempt := flags.Bool("exempt", false, "Exempt the key from the limit")
	clear := flags.Bool("clear", false, "Clear the override")
	for _, other := range []string{"exempt", "for", "note"} {
		cmd.MarkFlagsMutuallyExclusive("clear", other)
	}
	asks(cmd, func(c *instance, args []string) error {
		method, key := http.MethodPut, args[1:]
		switch {
		case *clear:
			method = http.MethodDelete
		case *exempt:
			request["limit"] = "exempt"
		case len(key) == 0:
			return errors.New("the limit is missing: give one such as 500/1m as the last argument, or --exempt or --clear")
		default:
			request["limit"], key = key[len(key)-1], key[:len(key)-1]
		}
		q, err := query(key)
		if err != nil {
			return err
		}
		err = c.changeKey(method, args[0], "/key/override", q, request)
		if invalid := new(apiError); !*clear && !*exempt && errors.As(err, &invalid) && invalid.status == "400" {
			return fmt.Errorf("%w (the last argument, %s, is the limit)", err, shell.Word(fmt.Sprint(request["limit"])))
		}
		return err
	})
}

// changeKey sends the request that changes a key, and shows the key afterwards, unless that is as if new.
func (c *instance) changeKey(method, zone, path string, query url.Values, body map[string]any) error {
	var reset adminapi.Reset
	text, err := c.fetch(method, zonePath(zone, path), query, body, &reset)
	if err != nil {
		return err
	}
	if reset.Warning != "" {
		fmt.Fprintf(c.err, "Warning: %s\n", local(reset.Warning))
	}
	isNew := path == "/key"
	if !isNew && reset.Network == "" {
		k, err := c.key(zone, query)
		if err != nil {
			fmt.Fprintln(c.err, "The change is made, but the key cannot be shown:", err)
		} else if method == http.MethodPut && !c.json && k.Lately == nil && k.Used == 0 {
			fmt.Fprintf(c.out, "\nNo request had this key lately. If one should have, compare the spelling with 'caddy rate-limit%s top %s'.\n", c.flags, shell.Word(zone))
		}
		return nil
	}
	switch {
	case c.json:
		_, err := c.out.Write(text)
		return err
	case reset.Unchanged: // of which the warning says why
	case isNew:
		key := shell.Words(slices.Concat(query["part"], query["key"], query["key_base64"]))
		fmt.Fprintf(c.out, "Reset %s in zone %s.\n", cmp.Or(key, "(no key)"), shell.Word(zone))
	default:
		holds := "It holds for"
		if method == http.MethodDelete {
			holds = "It has ended for"
		}
		fmt.Fprintf(c.out, "%s network %s in zone %s, at all instances within 5 seconds.\n", holds, reset.Network, shell.Word(zone))
	}
	return nil
}

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

// validityFlags adds the flags that say how long an override holds, and why. It returns the body that gets these fields.
func validityFlags(cmd *cobra.Command) map[string]any {
	body := make(map[string]any)
	cmd.Flags().Func("for", "How long it holds, such as 90s, 2h or 7d; without this `duration`, until it is cleared", func(text string) error {
		if _, err := caddy.ParseDuration(text); err != nil {
			return errors.New("write a duration such as 90s, 2h or 7d")
		}
		body["for"] = text
		return nil
	})
	cmd.Flags().Func("note", "A `note` for people, which 'caddy rate-limit get' shows", func(text string) error {
		body["note"] = text
		return nil
	})
	return body
}

func bansCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, zone []string) error { return c.list("bans", zone) })
}

func overridesCommand(cmd *cobra.Command) {
	asks(cmd, func(c *instance, zone []string) error { return c.list("overrides", zone) })
}

// fills says of a list what would fill it.
var fills = map[string]string{
	"bans":      "A zone bans with its option ban, and you do with 'caddy rate-limit ban <zone> <key>'.",
	"overrides": "'caddy rate-limit set <zone> <key> 100/1m' makes one.",
}

// never is later than any time of a list.
var never = time.Unix(1<<40, 0)

// list prints the bans or the overrides of a zone, or of all zones: what ends first comes first. With --json it prints one list
// for each zone.
func (c *instance) list(name string, zone []string) error {
	bans := name == "bans"
	var lists []adminapi.List
	query := url.Values{"zone": zone, "n": {"100000"}}
	if _, err := c.fetch(http.MethodGet, "overrides", query, nil, &lists); err != nil {
		return err
	}
	for i := range lists {
		lists[i].Keys = slices.DeleteFunc(lists[i].Keys, func(l adminapi.Listed) bool {
			return bans && l.Kind != adminapi.KindBanned || !bans && l.By == adminapi.ByRefusals
		})
	}
	if c.json {
		return c.printJSON(lists)
	}
	type row struct {
		until time.Time
		cells []string
	}
	var rows []row
	for _, of := range lists {
		for i := range of.Keys {
			rows = append(rows, row{cmp.Or(of.Keys[i].Until, never), listCells(of.Zone, &of.Keys[i])})
		}
	}
	if len(rows) == 0 {
		fmt.Fprintf(c.out, "There are no %s.\n", name)
		if len(zone) == 0 {
			c.say("%s", fills[name])
		}
		return nil
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.until.Compare(b.until) })
	all := [][]string{{"ZONE", "KEY", "BY", "OVERRIDE"}}
	for _, r := range rows {
		if !bans { // all are of operators
			r.cells[2] = ""
		}
		all = append(all, r.cells)
	}
	c.table(all)
	return nil
}

// listCells returns the row of a key in a list. It says whether that has no effect, and of a network, how many requests it has
// decided.
func listCells(zone string, l *adminapi.Listed) []string {
	override, key := l.Override, shell.ShowKey(l.KeyText)
	override.Network = "" // which is the key
	text := describeOverride(&override)
	if l.Network != "" {
		text += fmt.Sprintf(", %d requests", l.Requests)
	}
	if l.DryRun {
		text = "dry run: " + text
	}
	if l.Unknown {
		key = "(only its hash is known: " + l.Key + ")"
	}
	return []string{shell.Word(zone), key, strings.ReplaceAll(l.By, adminapi.ByOverride, "operator"), text}
}
