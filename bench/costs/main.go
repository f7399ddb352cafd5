// Command costs measures costs of the directive apart from the requests that it decides: a start, a reload, requests
// that wait for their turn, and keys in memory, each beside the same Caddy without it.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-costs:", err)
		os.Exit(1)
	}
}

const (
	zones   = 250       // of the config that is loaded again
	waiting = 3_000     // requests in a queue
	keys    = 1_000_000 // of clients
)

// row is a kind of cost. The sites are without the directive and with it.
type row struct {
	what       string
	bare, with string
	format     string
	measure    func(b *bench, site string) (float64, error)
}

const (
	handles = zones / 50 // handlers that share the zones
	answer  = "\trespond \"Hello, World!\"\n"
	oneZone = "\trate_limit {\n\t\tzone clients {\n\t\t\tkey {header.X-Key}\n\t\t\trate 1000/24h\n\t\t}\n\t}\n"
	queue   = "\trate_limit {\n\t\tzone queue {\n\t\t\tkey all\n\t\t\talgorithm leaky_bucket\n\t\t\tmode queue\n\t\t\trate 3600/1h\n\t\t\tburst 3600\n\t\t\tmax_wait 1h\n\t\t}\n\t}\n"
)

var rows = []row{
	{"start of the process to the first response", answer, oneZone + answer, "%.2f s", (*bench).start},
	{fmt.Sprintf("reload of a config with %d zones in %d handlers", zones, handles), many(false), many(true), "%.2f s", (*bench).reload},
	{fmt.Sprintf("memory for %d requests in a queue, a connection each", waiting), answer, queue + answer, "%.0f MB", (*bench).wait},
	{fmt.Sprintf("memory for %d keys", keys), answer, oneZone + answer, "%.0f MB", (*bench).remember},
}

// many is a site with many routes, each with zones of its own or without.
func many(limited bool) string {
	var b strings.Builder
	for i := range handles {
		fmt.Fprintf(&b, "\thandle /%d/* {\n", i)
		if limited {
			b.WriteString("\t\trate_limit {\n")
			for j := range zones / handles {
				fmt.Fprintf(&b, "\t\t\tzone z%d_%d {\n\t\t\t\tkey {client_ip}\n\t\t\t\trate 100/1m\n\t\t\t}\n", i, j)
			}
			b.WriteString("\t\t}\n")
		}
		b.WriteString("\t\trespond \"Hello, World!\"\n\t}\n")
	}
	return b.String() + answer
}

type bench struct{ binary string }

func measure() (err error) {
	var (
		rounds = flag.Int("rounds", 3, "how many rounds; the table shows medians")
		root   = flag.String("root", "..", "the root of this repository")
		page   = flag.String("page", "", "also put the Markdown into this file, between <!-- costs --> and <!-- /costs -->")
	)
	flag.Parse()
	dir, err := os.MkdirTemp("", "bench-costs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := new(bench)
	if b.binary, err = rig.BuildCaddy(*root, dir); err != nil {
		return err
	}
	table := fmt.Sprintf("%s, %s, %s; %d rounds.\n\n| what | bare Caddy | with the directive |\n|---|---:|---:|\n",
		rig.Processors(), runtime.GOOS, time.Now().Format(time.DateOnly), *rounds)
	for _, r := range rows {
		fmt.Fprintln(os.Stderr, r.what)
		var bare, with []float64
		for range *rounds {
			for site, all := range map[string]*[]float64{r.bare: &bare, r.with: &with} {
				figure, err := r.measure(b, site)
				if err != nil {
					return fmt.Errorf("%s: %w", r.what, err)
				}
				*all = append(*all, figure)
			}
		}
		cell := func(all []float64) string { return fmt.Sprintf(r.format, rig.Median(all)) + rig.Spread(r.format, all) }
		table += fmt.Sprintf("| %s | %s | %s |\n", r.what, cell(bare), cell(with))
	}
	fmt.Print(table)
	if *page != "" {
		return rig.Rewrite(*page, "costs", table)
	}
	return nil
}

// start returns how long a Caddy takes to its first response.
func (b *bench) start(site string) (float64, error) {
	begin := time.Now()
	c, err := rig.StartCaddy(b.binary, site)
	if err != nil {
		return 0, err
	}
	return time.Since(begin).Seconds(), c.Close()
}

// reload returns how long a Caddy takes to load its config once more.
func (b *bench) reload(site string) (took float64, err error) {
	c, err := rig.StartCaddy(b.binary, site)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	begin := time.Now()
	if err := c.Reload(); err != nil {
		return 0, err
	}
	return time.Since(begin).Seconds(), nil
}

// wait returns the memory for requests that are under way at once, and wait if the site has a queue.
func (b *bench) wait(site string) (float64, error) {
	var open []net.Conn
	grown, err := b.added(site, func(address string) error {
		for range waiting {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			open = append(open, conn)
			if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address); err != nil {
				return err
			}
		}
		time.Sleep(2 * time.Second) // until all of them wait
		last := open[len(open)-1]
		if err := last.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		_, err := last.Read(make([]byte, 1))
		if waits := errors.Is(err, os.ErrDeadlineExceeded); waits != strings.Contains(site, "queue") {
			return fmt.Errorf("the last request waits: %v, which it should in a queue alone", waits)
		}
		return nil
	})
	for _, conn := range open {
		_ = conn.Close()
	}
	return grown, err
}

// remember returns the memory after a request of each client.
func (b *bench) remember(site string) (float64, error) {
	return b.added(site, func(address string) error {
		const connections, pipelined = 4, 100
		errs := make([]error, connections)
		var all sync.WaitGroup
		for i := range connections {
			all.Go(func() { errs[i] = visit(address, i*keys/connections, (i+1)*keys/connections, pipelined) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
}

// visit sends a request for each client of a range, so many at once on a connection.
func visit(address string, from, to, pipelined int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for ; from < to; from += pipelined {
		var requests strings.Builder
		for i := range pipelined {
			fmt.Fprintf(&requests, "GET / HTTP/1.1\r\nHost: %s\r\nX-Key: client-%d\r\n\r\n", address, from+i)
		}
		if _, err := io.WriteString(conn, requests.String()); err != nil {
			return err
		}
		for range pipelined {
			response, err := http.ReadResponse(r, nil)
			if err != nil {
				return err
			}
			if n, err := io.Copy(io.Discard, response.Body); err != nil || n == 0 {
				return fmt.Errorf("a client got status %d without a body: %w", response.StatusCode, cmp.Or(err, io.ErrUnexpectedEOF))
			}
		}
	}
	return nil
}

// added returns by how many megabytes the memory of a Caddy grows while something is done to it.
func (b *bench) added(site string, use func(address string) error) (grown float64, err error) {
	c, err := rig.StartCaddy(b.binary, site)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	at, err := url.Parse(c.URL)
	if err != nil {
		return 0, err
	}
	before, err := c.Memory()
	if err != nil {
		return 0, err
	}
	if err := use(at.Host); err != nil {
		return 0, err
	}
	after, err := c.Memory()
	return (after - before) / 1e6, err
}
