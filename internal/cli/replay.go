package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/engine"
)

func replayCommand(cmd *cobra.Command) {
	flags := cmd.Flags()
	o := new(replay.Options)
	flags.StringVar(&o.Zone, "zone", "", "Report this zone only")
	tries := flags.StringArray("try", nil, "Other limits for a zone, as 'clients=60/1m,200/1m', or 'clients.free=60/1m' for a plan; may be repeated")
	flags.BoolVar(&o.Suggest, "suggest", false, "Suggest a limit for each zone; reads the logs twice")
	flags.StringVar(&o.Format, "format", "auto", "The format of the logs, if it is not clear from their first lines")
	flags.StringArrayVar(&o.LogFormat, "log-format", nil, "The text of log_format in the configuration of nginx; may be repeated if lines have several")
	from := flags.String("from", "", "Leave out requests before this time, such as 2026-11-20 or 2026-11-20T14:00")
	to := flags.String("to", "", "Leave out requests from this time on")
	page := flags.String("html", "", "Also write the report as a page with pictures to this file; it replaces a page that is there")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		o.Logs, o.Input = args, cmd.InOrStdin()
		if *page != "" && filepath.Ext(*page) != ".html" {
			return fmt.Errorf("--html replaces the file %s: write a name that ends in .html", *page)
		}
		if o.Tries, err = parseTries(*tries); err != nil {
			return err
		}
		if o.From, err = parseTime("from", *from); err != nil {
			return err
		}
		if o.To, err = parseTime("to", *to); err != nil {
			return err
		}
		if !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To) {
			return fmt.Errorf("--to %s must be after --from %s", *to, *from)
		}
		o.Curve, o.Suggest = *page != "", o.Suggest || *page != ""
		return replayLogs(cmd, o, *page)
	}
}

// parseTries reads limits such as clients=60/1m,200/1m.
func parseTries(all []string) (tries []replay.Try, err error) {
	for _, text := range all {
		name, rates, ok := strings.Cut(text, "=")
		if !ok || name == "" || rates == "" {
			return nil, fmt.Errorf("--try %q: write it as 'clients=60/1m,200/1m'", text)
		}
		for rate := range strings.SplitSeq(rates, ",") {
			tries = append(tries, replay.Try{Zone: name, Rate: strings.TrimSpace(rate)})
		}
	}
	return tries, nil
}

// parseTime reads a time. Without a zone it is one of this machine.
func parseTime(flag, text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = duration.ParseTime(text, time.Local); err == nil {
		return at, nil
	}
	return at, fmt.Errorf("--%s %q: write a time such as 2026-11-20, 2026-11-20T14:00 or 2026-11-20T14:00:00Z", flag, text)
}

// replayLogs prints what a config would have done to the requests of logs.
func replayLogs(cmd *cobra.Command, o *replay.Options, page string) error {
	config, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	s := newScreen(cmd)
	done := s.waiting("the replay")
	result, err := engine.Replay(config, o)
	done()
	if err != nil {
		return err
	}
	if result.Config, _ = cmd.Flags().GetString("config"); result.Config == "" {
		result.Config = adjacentFile
	}
	if page != "" {
		if err := writePage(page, result); err != nil {
			return err
		}
	}
	if s.json {
		err = s.printJSON(result)
	} else {
		err = result.WriteText(s.out, time.Local)
	}
	switch {
	case err != nil:
		return err
	case result.Requests == 0 && result.NotUnderstood > 0 && result.NotUnderstood == result.Lines:
		return noneFits(o, result)
	case result.Requests == 0:
		return errors.New("there are no requests in the logs, or none between --from and --to")
	case !slices.ContainsFunc(result.Zones, func(z *replay.Zone) bool { return z.Requests > 0 }):
		return errors.New("no zone could judge a request: the report says why")
	}
	return nil
}

// noneFits says that no line of the logs was understood.
func noneFits(o *replay.Options, r *replay.Result) error {
	as := "--format " + o.Format
	if len(o.LogFormat) > 0 {
		as = "--log-format"
	}
	return fmt.Errorf("none of %s lines fits %s; the first: %s: %s", replay.Count(r.NotUnderstood), as, r.FirstBad[0].Why, r.FirstBad[0].Text)
}

// writePage writes the report as a page. Only its owner may read it, because it has keys of clients: it is a new file in
// place of an earlier one, or of a link.
func writePage(name string, result *replay.Result) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".*.html")
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	err = errors.Join(result.WriteHTML(file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}
