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

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
)

func replayCommand(cmd *cobra.Command) {
	flags := cmd.Flags()
	o := new(replay.Options)
	flags.Func("try", "Other `limits` for a zone, as 'clients=60/1m,200/1m'; may be repeated", readTries(&o.Tries))
	flags.BoolVar(&o.Suggest, "suggest", false, "Suggest a limit for each zone; reads the logs twice")
	flags.StringVar(&o.Format, "format", "auto", "The format of the logs, if it is not clear from their first lines")
	flags.StringArrayVar(&o.LogFormat, "log-format", nil, "The text of log_format in the configuration of nginx; may be repeated if lines have several")
	page := flags.String("html", "", "Also write the report as a page with pictures to this file; it replaces a page that is there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Logs, o.Input = args, cmd.InOrStdin()
		if *page != "" && filepath.Ext(*page) != ".html" {
			return fmt.Errorf("--html replaces the file %s: write a name that ends in .html", *page)
		}
		o.Curve = *page != ""
		return replayLogs(cmd, o, *page)
	}
}

// readTries returns what reads limits such as clients=60/1m,200/1m.
func readTries(to *[]replay.Try) func(text string) error {
	return func(text string) error {
		name, rates, ok := strings.Cut(text, "=")
		if !ok || name == "" || rates == "" {
			return errors.New("write it as 'clients=60/1m,200/1m'")
		}
		for rate := range strings.SplitSeq(rates, ",") {
			*to = append(*to, replay.Try{Zone: name, Rate: strings.TrimSpace(rate)})
		}
		return nil
	}
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
		return errors.New("there are no requests in the logs")
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
	return fmt.Errorf("none of %s lines fits %s; the first: %s", replay.Count(r.NotUnderstood), as, r.FirstBad[0])
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
