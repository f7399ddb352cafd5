package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
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

In a narrow terminal, lines show the method and the path of the request. --wide adds
milliseconds, the address of the client and the host.
` + keyHelp,
		Example:           "  caddy rate-limit watch --outcome refused\n  caddy rate-limit watch clients 203.0.113.7",
		ValidArgsFunction: completeKeys,
	})
	query := keyFlags(cmd)
	outcomes := append(outcome.Names[:], outcome.NameRefused, outcome.NameErrors)
	chosen := cmd.Flags().StringSlice("outcome", nil, "Only decisions with these outcomes: "+strings.Join(outcomes, ", "))
	rate := cmd.Flags().Int("rate", 20, "How many decisions to show per second, at most 1000; of a fleet, per instance")
	count := cmd.Flags().IntP("number", "n", 0, "End after this many decisions")
	cmd.RunE = onFleet(func(f *fleet, args []string) (err error) {
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
	})
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const (
	// maxReconnects is how often a watch tries to reconnect to the admin endpoint, which a reload
	// replaces.
	maxReconnects = 10

	reconnectPause = 300 * time.Millisecond
)

// watch prints decisions of all instances until there are enough, or no Caddy sends any more.
func (f *fleet) watch(query url.Values, count int) error {
	w := &watcher{fleet: f, left: count, enough: make(chan struct{})}
	errs := make([]error, len(f.caddys))
	var group sync.WaitGroup
	for i, e := range f.caddys {
		group.Go(func() {
			if errs[i] = w.follow(e, query); errs[i] != nil && !f.isOne() {
				fmt.Fprintf(f.err, "%s: %v\n", e.address, errs[i])
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		group.Wait()
		close(ended)
	}()
	select {
	case <-w.enough:
		return w.err
	case <-ended:
		return f.failures(errs)
	}
}

// hasOthers reports whether other instances share a store with the one that is asked. One that does not say so has none.
func (f *fleet) hasOthers() bool {
	var stores []adminapi.Store
	_, err := f.asked.fetch(http.MethodGet, "stores", nil, nil, &stores)
	return err == nil && slices.ContainsFunc(stores, func(s adminapi.Store) bool { return s.Instances > 1 })
}

// watcher prints the decisions of several instances, one at a time.
type watcher struct {
	*fleet
	mu     sync.Mutex
	layout *decisionLayout // nil until a Caddy answers
	left   int             // how many decisions to print yet; not above 0 for all
	done   bool            // nothing more is printed
	enough chan struct{}   // closed when it is done
	err    error
}

// follow prints the decisions of one instance, until it does not come back.
func (w *watcher) follow(e *endpoint, query url.Values) error {
	began := false
	for tries := 0; ; tries++ {
		response, err := e.call(http.MethodGet, "decisions", query, nil)
		if err != nil && (!began || tries >= maxReconnects) {
			return err
		}
		if err == nil {
			if !began {
				w.begin(e, query)
			}
			began, tries = true, 0
			lines := bufio.NewScanner(response.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					w.print(e, text)
				}
			}
			response.Body.Close()
		}
		time.Sleep(reconnectPause)
	}
}

// begin prints the header of the table when the first Caddy answers.
func (w *watcher) begin(e *endpoint, query url.Values) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.layout != nil || w.json {
		return
	}
	w.layout = w.fleet.decisionLayout(e, query.Get("zone"), query.Has(fleetFlag))
	if query.Has(fleetFlag) {
		fmt.Fprintln(w.screen.err, "Those of other instances are a sample: at most 10 refusals and 10 others of each in two seconds.")
	}
	w.layout.print(w.out, w.layout.header())
}

// print prints a decision.
func (w *watcher) print(e *endpoint, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	w.left--
	w.err = w.printDecision(e, text)
	if w.done = w.left == 0 || w.err != nil; w.done {
		close(w.enough)
	}
}

func (w *watcher) printDecision(e *endpoint, text string) error {
	if w.json {
		if !w.isOne() {
			line, err := json.Marshal(caddyAnswer{Address: e.address, Answer: json.RawMessage(text)})
			if err != nil {
				return fmt.Errorf("reading a decision: %w", err)
			}
			text = string(line)
		}
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
	return w.layout.print(w.out, w.layout.cells(cmp.Or(inLine(d.Instance), e.address), &d))
}
