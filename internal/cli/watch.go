package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

func watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch [<zone> [<key>...]]",
		Short: "Shows decisions as they are made",
		Long: `
Shows decisions as this Caddy makes them, until it is interrupted: those of all zones,
of one zone, or of one key. If there are more than --rate per second, it shows a sample
and how many it has left out. It continues after config reloads.
` + keyHelp,
		Example:           "  caddy rate-limit watch --outcome refused\n  caddy rate-limit watch clients 203.0.113.7",
		ValidArgsFunction: completeKeys,
	}
	query := keyFlags(cmd)
	outcomes := append(outcome.Names[:], outcome.NameRefused, outcome.NameErrors)
	chosen := cmd.Flags().StringSlice("outcome", nil, "Only decisions with these outcomes: "+strings.Join(outcomes, ", "))
	rate := cmd.Flags().Int("rate", 20, "How many decisions to show per second, at most 1000")
	count := cmd.Flags().IntP("number", "n", 0, "End after this many decisions")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := newEndpoint(cmd)
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
		return e.watch(q, *count)
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

// watch prints decisions until there are enough, or the endpoint does not come back.
func (e *endpoint) watch(query url.Values, count int) error {
	began := false
	for tries := 0; ; tries++ {
		response, err := e.call(http.MethodGet, "decisions", query, nil)
		if err != nil && (!began || tries >= maxReconnects) {
			return err
		}
		if err == nil {
			if !began && !e.json {
				fmt.Fprintf(e.out, decisionColumns, "TIME", "OUTCOME", "ZONE", "KEY", "REMAINING", "WAIT", "REQUEST")
			}
			began, tries = true, 0
			lines := bufio.NewScanner(response.Body)
			lines.Buffer(nil, 1<<20)
			enough, err := e.printDecisions(lines, &count)
			response.Body.Close()
			if enough || err != nil {
				return err
			}
		}
		time.Sleep(reconnectPause)
	}
}

// decisionColumns is the form of a line about a decision. Lines come one by one, so the columns have
// the widths of most values.
const decisionColumns = "%-12s  %-12s  %-10s  %-15s  %-9s  %-6s  %s\n"

// printDecisions prints decisions until there are enough or the stream ends.
func (e *endpoint) printDecisions(lines *bufio.Scanner, count *int) (enough bool, err error) {
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if e.json {
			fmt.Fprintln(e.out, text)
		} else if err := e.printDecision(text); err != nil {
			return false, err
		}
		if *count--; *count == 0 {
			return true, nil
		}
	}
	return false, nil
}

func (e *endpoint) printDecision(text string) error {
	var s adminapi.Decision
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("reading a decision: %w; does that Caddy have another version?", err)
	}
	if s.Skipped > 0 {
		fmt.Fprintf(e.out, "(%d not shown)\n", s.Skipped)
	}
	remaining, retry := "-", "-"
	if d := s.Decision; d != nil {
		remaining = fmt.Sprintf("%d/%d", d.Remaining, d.Quota)
		switch {
		case d.Never:
			retry = "never"
		case d.RetryAfter > 0:
			retry = formatSeconds(d.RetryAfter)
		}
	}
	reason := ""
	if s.Reason != "" {
		reason = "  (" + s.Reason + ")"
	}
	request := fmt.Sprintf("%s %s %s%s%s", shellWord(s.ClientIP), shellWord(s.Method), shellWord(s.Host), shellWord(s.Path), reason)
	_, err := fmt.Fprintf(e.out, decisionColumns, s.Time.Local().Format("15:04:05.000"), s.Outcome,
		shellWord(s.Zone), showKey(s.KeyText), remaining, retry, request)
	return err
}
