package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

func watchCommand(cmd *cobra.Command) {
	query := keyFlags(cmd)
	outcomes := append(outcome.Names[:], outcome.NameRefused, outcome.NameErrors)
	chosen := cmd.Flags().StringSlice("outcome", nil, "Only decisions with these outcomes: "+strings.Join(outcomes, ", "))
	rate := cmd.Flags().Int("rate", 20, "How many decisions to show per second, at most 1000")
	count := cmd.Flags().IntP("number", "n", 0, "End after this many decisions")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := newInstance(cmd)
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
		return c.watch(q, *count)
	}
}

// reconnectPause is when a watch connects again to the admin endpoint, which a reload replaces.
const reconnectPause = 300 * time.Millisecond

// watch prints decisions until there are enough, or Caddy sends no more.
func (c *instance) watch(query url.Values, count int) error {
	w := &watcher{instance: c, left: count}
	w.came = c.waiting("decisions of caddy " + c.address)
	for {
		response, err := c.call(http.MethodGet, "decisions", query, nil)
		if err != nil {
			return err
		}
		enough, err := w.printAll(response.Body)
		response.Body.Close()
		if enough || err != nil {
			return err
		}
		time.Sleep(reconnectPause)
	}
}

// watcher prints decisions. They come one by one, so the columns have the usual widths.
type watcher struct {
	*instance
	columns []int // the widths of all but the last one; nil before the first decision
	left    int   // how many decisions to print yet; 0 or less for all
	came    func()
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
		w.came()
		if err := w.print(text); err != nil {
			return false, err
		}
		if w.left--; w.left == 0 {
			return true, nil
		}
	}
	return false, nil // a reload ends it
}

// print prints a decision, and a header before the first one.
func (w *watcher) print(text string) error {
	if w.json {
		_, err := fmt.Fprintln(w.out, text)
		return err
	}
	var d adminapi.Decision
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("reading a decision: %w; does that Caddy have another version?", err)
	}
	if w.columns == nil {
		w.columns = []int{len(time.TimeOnly), 8, 9, usualKey, 7, 5}
		fmt.Fprintln(w.out, w.line([]string{"TIME", "OUTCOME", "ZONE", "KEY", "LEFT", "WAIT", "REQUEST"}, w.columns))
	}
	if d.Skipped > 0 {
		fmt.Fprintf(w.out, "(%d not shown)\n", d.Skipped)
	}
	key, zone := w.short(shell.ShowKey(d.KeyText)), shell.Word(d.Zone)
	if d.Plan != "" {
		zone += inParentheses("plan " + shell.Word(d.Plan))
	}
	left, wait := "-", "-"
	if q := d.Decision; q != nil {
		left = fmt.Sprintf("%d/%d", q.Remaining, q.Quota)
		if q.Never {
			wait = "never"
		} else if q.RetryAfter > 0 {
			wait = duration.Seconds(q.RetryAfter)
		}
	}
	request := shell.Words([]string{d.Method, d.Path}) + inParentheses(d.Reason)
	cells := []string{d.Time.Local().Format(time.TimeOnly), d.Outcome, zone, key, left, wait, request}
	_, err := fmt.Fprintln(w.out, w.line(cells, w.columns))
	return err
}
