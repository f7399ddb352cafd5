package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

func watchCommand() *cobra.Command {
	cmd := ofFleet(&cobra.Command{
		Use:   "watch [<zone> [<key>...]]",
		Short: "Shows decisions as they are made",
		Long: `
Shows decisions as they are made, until it is interrupted: those of all zones, of one
zone, or of one key. If there are more than --rate per second, it shows a sample, and
how many it left out. It continues after config reloads.

In a terminal, lines show the method and the path of the request. Written to a file or a
pipe, they also have milliseconds, the address of the client and the host.
` + keyHelp,
		Example:           "  caddy rate-limit watch --outcome refused\n  caddy rate-limit watch clients 203.0.113.7",
		ValidArgsFunction: completeZones,
	})
	query := keyFlags(cmd)
	outcomes := append(outcome.Names[:], outcome.NameRefused, outcome.NameErrors)
	chosen := cmd.Flags().StringSlice("outcome", nil, "Only decisions with these outcomes: "+strings.Join(outcomes, ", "))
	rate := cmd.Flags().Int("rate", 20, "How many decisions to show per second, at most 1000; of a fleet, per instance")
	count := cmd.Flags().IntP("number", "n", 0, "End after this many decisions")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := newFleet(cmd)
		if err != nil {
			return err
		}
		q := make(url.Values)
		if len(args) > 0 {
			if q, err = query(args[1:]); err != nil {
				return err
			}
			q.Set("zone", args[0])
		}
		q.Set("rate", strconv.Itoa(*rate))
		if len(*chosen) > 0 {
			q.Set("outcome", strings.Join(*chosen, ","))
		}
		if f.about != "" && f.hasOthers() {
			q.Set(fleetFlag, f.about)
		}
		return f.watch(q, *count)
	}
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const (
	// maxReconnects is how often a watch tries to reconnect to the admin endpoint, which a reload
	// replaces.
	maxReconnects = 10

	reconnectPause = 300 * time.Millisecond
)

// watch prints decisions until there are enough, or Caddy sends no more.
func (f *fleet) watch(query url.Values, count int) error {
	w := &watcher{fleet: f, left: count}
	for tries := 0; ; tries++ {
		response, err := f.asked.call(http.MethodGet, "decisions", query, nil)
		if err != nil && (w.layout == nil || tries >= maxReconnects) {
			return err
		}
		if err == nil {
			w.begin(query)
			tries = 0
			enough, err := w.printAll(response.Body)
			response.Body.Close()
			if enough || err != nil {
				return err
			}
		}
		time.Sleep(reconnectPause)
	}
}

// hasOthers reports whether other instances share a store with the one that is asked. One that does not say so has none.
func (f *fleet) hasOthers() bool {
	var stores []adminapi.Store
	_, err := f.asked.fetch(http.MethodGet, "stores", nil, nil, &stores)
	return err == nil && slices.ContainsFunc(stores, func(s adminapi.Store) bool { return s.Instances > 1 })
}

// watcher prints decisions.
type watcher struct {
	*fleet
	layout *decisionLayout // nil until Caddy answers
	left   int             // how many decisions to print yet; not above 0 for all
}

// begin prints the header of the table when Caddy answers for the first time.
func (w *watcher) begin(query url.Values) {
	if w.layout != nil {
		return
	}
	w.layout = newDecisionLayout(w.screen, query.Has(fleetFlag))
	if w.json {
		return
	}
	if query.Has(fleetFlag) {
		fmt.Fprintln(w.screen.err, "Those of other instances are a sample: at most 10 refusals and 10 others of each in two seconds.")
	}
	w.layout.print(w.out, w.layout.header())
}

// printAll prints decisions as they come, and reports whether they are enough.
func (w *watcher) printAll(from io.Reader) (enough bool, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if err := w.print(text); err != nil {
			return false, err
		}
		if w.left--; w.left == 0 {
			return true, nil
		}
	}
	return false, nil // a reload ends it
}

// print prints a decision.
func (w *watcher) print(text string) error {
	if w.json {
		_, err := fmt.Fprintln(w.out, text)
		return err
	}
	var d adminapi.Decision
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("reading a decision: %w; does that Caddy have another version?", err)
	}
	if d.Skipped > 0 {
		fmt.Fprintf(w.out, "(%d not shown)\n", d.Skipped)
	}
	return w.layout.print(w.out, w.layout.cells(cmp.Or(inLine(d.Instance), w.asked.address), &d))
}
