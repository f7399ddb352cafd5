// Command nemesis is a kit for any rate limiter behind HTTP. It offers a known load, counts at an upstream of its own what arrives,
// breaks things by a hook, and prints a table: what was admitted beyond the limit, what was refused although there was room, how long
// requests failed, and whether headers said what then happened. See RESULTS.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "nemesis:", err)
		os.Exit(1)
	}
}

func run() error {
	var l load
	flag.IntVar(&l.clients, "clients", 4, "how many clients: the first half stays below the limit")
	flag.IntVar(&l.limit, "limit", 50, "the limit of each client")
	flag.DurationVar(&l.window, "window", 5*time.Second, "the window of the limit")
	flag.Float64Var(&l.below, "below", 0.5, "what clients below the limit offer, as a part of it")
	flag.Float64Var(&l.above, "above", 2, "what clients above the limit offer, as a multiple of it")
	flag.IntVar(&l.volley, "volley", 10, "how many requests a client above the limit sends at once")
	flag.DurationVar(&l.time, "time", 25*time.Second, "how long a case is")
	flag.DurationVar(&l.timeout, "timeout", time.Second, "how long a request may take")
	var (
		listen   = flag.String("listen", "127.0.0.1:0", "the address of the upstream, to which the limiter sends what it admits")
		program  = flag.String("hook", "", "a program that starts, breaks and ends what is measured, see hook.go")
		file     = flag.String("cases", "", "a file with a case in each line: name | promise | faults; the hook prints the URLs")
		urls     = flag.String("urls", "", "without -cases: the URLs of the limiter's instances, separated by commas")
		promised = flag.String("promise", "sliding", "without -cases: sliding, fixed or bucket, and if it is another limit: \"fixed 10/1s\"")
		faults   = flag.String("faults", "", "without -cases: what the hook is to do when, such as \"10s kill redis; 15s start redis\"")
		only     = flag.String("only", "", "only the cases that match (a regular expression)")
		page     = flag.String("page", "", "also put the table into this file, between <!-- nemesis --> and <!-- /nemesis -->")
	)
	flag.Parse()
	if l.clients < 2 || l.below <= 0 || l.above <= 0 || l.volley < 1 || l.time <= 0 || l.timeout <= 0 {
		return errors.New("clients must be at least 2, volley at least 1, and below, above, time and timeout above zero")
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("only: %w", err)
	}
	text := fmt.Sprintf("%s | %s | %s\n", *urls, *promised, *faults)
	if *file != "" {
		read, err := os.ReadFile(*file)
		if err != nil {
			return err
		}
		text = string(read)
	}
	cases, err := parseCases(text, l.limit, l.window)
	if err != nil {
		return err
	}
	up, err := startUpstream(*listen)
	if err != nil {
		return err
	}
	defer up.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := hook{*program, up.address}
	versions := "is unknown"
	if *file == "" {
		l.urls = strings.Split(*urls, ",")
	} else if versions, err = h.call(ctx, "versions"); err != nil {
		return err
	}
	rows, err := measure(ctx, cases, pattern, l, h, up)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("`%s`. The limit is %d in %v for each of %d clients. Half of them offer %g and half %g times the limit, %d requests at once. A case took %v",
		rig.Machine(strings.TrimSpace(versions)), l.limit, l.window, l.clients, l.below, l.above, l.volley, l.time)
	if *page != "" {
		if err := rig.Rewrite(*page, "nemesis", markdown(about, rows)); err != nil {
			return err
		}
	}
	_, err = fmt.Print(markdown(about, rows))
	return err
}

// measure runs the cases that match. Without URLs in the load, the hook starts and ends the servers of each.
func measure(ctx context.Context, cases []oneCase, pattern *regexp.Regexp, l load, h hook, up *upstream) (rows []row, err error) {
	started := len(l.urls) == 0
	for _, c := range cases {
		if !pattern.MatchString(c.name) {
			continue
		}
		if started {
			if l.urls, err = h.up(ctx, c.name); err != nil {
				return nil, err
			}
			if len(l.urls) == 0 {
				fmt.Fprintf(os.Stderr, "%s: not here\n", c.name)
				continue
			}
		}
		v, err := c.run(ctx, l, h, up)
		if started {
			_, down := h.call(context.WithoutCancel(ctx), "down", c.name)
			err = errors.Join(err, down)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, row{c, v})
		fmt.Fprintln(os.Stderr, strings.Join(rows[len(rows)-1].cells(), "  "))
	}
	return rows, nil
}

// oneCase is a row of the table before it is measured.
type oneCase struct {
	name    string
	promise promise
	faults  []fault
}

// parseCases reads a line for each case: name | promise | faults. Lines that begin with # are for people.
func parseCases(text string, limit int, window time.Duration) (all []oneCase, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 3 {
			return nil, fmt.Errorf("case %q is not: name | promise | faults", line)
		}
		c := oneCase{name: strings.TrimSpace(cells[0])}
		if c.promise, err = newPromise(strings.TrimSpace(cells[1]), limit, window); err != nil {
			return nil, fmt.Errorf("case %q: %w", c.name, err)
		}
		if c.faults, err = parseFaults(cells[2]); err != nil {
			return nil, fmt.Errorf("case %q: %w", c.name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// run waits until all instances answer, offers the load, and judges what came of it.
func (c oneCase) run(ctx context.Context, l load, h hook, up *upstream) (verdict, error) {
	for _, url := range l.urls {
		if err := await(ctx, url); err != nil {
			return verdict{}, err
		}
	}
	begin := time.Now()
	var settled time.Duration
	failed := make(chan error, 1)
	go func() {
		var err error
		settled, err = h.inflict(ctx, begin, c.faults)
		failed <- err
	}()
	requests := l.offer(ctx, begin, up)
	if err := errors.Join(<-failed, ctx.Err()); err != nil {
		return verdict{}, err
	}
	return judge(requests, c.promise, settled+l.timeout), nil
}

// await returns when a URL answers with anything but an error of a server.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	last := errors.New("no answer")
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		request.Header.Set(clientHeader, "warm-up")
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode < 500 {
				return nil
			}
			err = errors.New(response.Status)
		}
		last = err
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%s does not answer: %w", url, last)
}
