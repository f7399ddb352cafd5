// Command stream measures when the events of a stream reach the client: through a Caddy with a fixed cost, with a cost
// that is read from the stream, and without the directive. The first of them is measured twice, which shows how much
// differs by chance.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-stream:", err)
		os.Exit(1)
	}
}

// began is the time from which the upstream and the client count, because both are in this process.
var began = time.Now()

const (
	event = `data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":null}],"usage":null}` + "\n\n"
	usage = `data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":%d}}` + "\n\ndata: [DONE]\n\n"
)

// upstream streams events. Each of them says when it was written.
func upstream(events int, gap time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		for range events {
			fmt.Fprintf(w, event, time.Since(began))
			if control.Flush() != nil {
				return
			}
			time.Sleep(gap)
		}
		fmt.Fprintf(w, usage, events)
	}
}

// site has a path for each way to count, and serves HTTP/1 and HTTP/2 without TLS.
const site = `{
	admin off
	persist_config off
	auto_https off
	servers {
		protocols h1 h2c
	}
}
http://127.0.0.1:%d {
	rate_limit /fixed {
		zone fixed {
			key {client_ip}
			algorithm token_bucket
			events 1000000000
			window 1h
			cost 500
		}
	}
	rate_limit /read {
		zone read {
			key {client_ip}
			algorithm token_bucket
			events 1000000000
			window 1h
			cost 500
			charge {
				json usage.prompt_tokens usage.completion_tokens*4
			}
		}
	}
	reverse_proxy %s
}
`

var ways = []struct{ name, path string }{
	{"with a fixed cost", "/fixed"},
	{"with a fixed cost, again", "/fixed"},
	{"with a cost in the body", "/read"},
	{"without the directive", "/bare"},
}

func measure() (err error) {
	rounds := flag.Int("rounds", 500, "how often each stream is read")
	events := flag.Int("events", 20, "the events of a stream")
	gap := flag.Duration("gap", time.Millisecond, "the time between two events")
	root := flag.String("root", "..", "the root of this repository")
	flag.Parse()
	if *rounds < 1 || *events < 2 {
		return fmt.Errorf("rounds must be at least 1 and events at least 2, got %d and %d", *rounds, *events)
	}
	dir, err := os.MkdirTemp("", "bench-stream-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: upstream(*events, *gap)}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	url, caddy, err := start(*root, dir, listener.Addr().String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, caddy.End(30*time.Second)) }()
	return errors.Join(compare("HTTP/1.1", client(1), url, *rounds), compare("HTTP/2", client(2), url, *rounds))
}

// start builds a Caddy and runs it in front of an upstream.
func start(root, dir, upstream string) (url string, process *childprocess.Process, err error) {
	binary, config := filepath.Join(dir, "caddy"), filepath.Join(dir, "Caddyfile")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/caddy")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return "", nil, fmt.Errorf("building cmd/caddy in %s: %w", root, err)
	}
	port, err := rig.FreePort()
	if err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, site, port, upstream), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(binary, "run", "--config", config, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if process, err = childprocess.Start(cmd); err != nil {
		return "", nil, err
	}
	url = "http://127.0.0.1:" + strconv.Itoa(port)
	if err := process.Await(30*time.Second, func(context.Context) error {
		response, err := http.Get(url)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}); err != nil {
		return "", nil, errors.Join(err, process.End(30*time.Second))
	}
	return url, process, nil
}

// client returns a client of one version of HTTP.
func client(major int) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(major == 1)
	transport.Protocols.SetUnencryptedHTTP2(major == 2)
	return &http.Client{Transport: transport}
}

// delays are how long the first byte and each event of streams took.
type delays struct{ first, event []float64 }

// compare reads streams in turns, so that what disturbs one disturbs all.
func compare(name string, c *http.Client, url string, rounds int) error {
	all := make([]delays, len(ways))
	for round := range rounds {
		for turn := range ways {
			i := (round + turn) % len(ways)
			if err := all[i].read(c, url+ways[i].path); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%s, µs\n%-30s %14s %14s %14s %14s\n", name, "", "first byte p50", "first byte p99", "event p50", "event p99")
	for i, w := range ways {
		fmt.Printf("%-30s", w.name)
		for _, of := range []func(*delays) []float64{func(d *delays) []float64 { return d.first }, func(d *delays) []float64 { return d.event }} {
			for _, percent := range []int{50, 99} {
				value, fixed := percentile(of(&all[i]), percent), percentile(of(&all[0]), percent)
				fmt.Printf("  %5.0f (%4.2f×)", value, value/fixed)
			}
		}
		fmt.Println()
	}
	return nil
}

// read reads a stream to its end.
func (d *delays) read(c *http.Client, url string) error {
	sent := time.Now()
	response, err := c.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if _, err := lines.Peek(1); err != nil {
		return err
	}
	d.first = append(d.first, micros(time.Since(sent)))
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		now := time.Since(began)
		if err == io.EOF {
			if response.StatusCode != http.StatusOK || n == 0 {
				return fmt.Errorf("status %d with %d lines", response.StatusCode, n)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if _, rest, ok := strings.Cut(line, `"content":"`); ok && n > 0 {
			digits, _, _ := strings.Cut(rest, `"`)
			written, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				return err
			}
			d.event = append(d.event, micros(now-time.Duration(written)))
		}
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func percentile(values []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)*percent/100]
}
