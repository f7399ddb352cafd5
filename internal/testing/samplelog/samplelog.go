// Package samplelog makes access logs as Caddy writes them, of a day of made-up clients: people who
// read pages, programs of users, a crawler, an office behind one address, and a scraper.
package samplelog

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/heap"
)

// Options say what to make. The same options make the same log.
type Options struct {
	Lines   int
	Clients int // people; there are a few other clients besides
	Start   time.Time
	Span    time.Duration
	Seed    uint64

	Offices   int  // addresses of ten people each, who work from 8 to 18 o'clock and all begin at 9
	NoCookies bool // the site has none
	Combined  bool // the combined format of nginx and Apache, which has no cookies, instead of Caddy's
}

// Day is the beginning of the day of the sample log.
var Day = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// client is a person or a program that sends requests.
type client struct {
	ip, agent, user string
	port            int
	cookie, works   bool
	next            float64 // seconds since the start
	left            int     // requests of the visit
	pause           float64 // seconds between the requests of a visit, on average
	visits          float64 // seconds between visits, on average
	length          int     // requests of a visit, on average
	paths           []string
	status          func(*rand.Rand) int
}

// Before implements [heap.Heap].
func (c *client) Before(other *client) bool { return c.next < other.next }

var browsers = []string{
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
	"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1",
}

func ok(r *rand.Rand) int {
	switch n := r.IntN(100); {
	case n < 90:
		return 200
	case n < 95:
		return 304
	case n < 98:
		return 301
	}
	return 404
}

func pages(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("/articles/%d", i+1), fmt.Sprintf("/assets/%d.js?v=42", i%7), fmt.Sprintf("/images/%d.webp", i))
	}
	return append(paths, "/", "/favicon.ico", "/api/cart", "/search?q=caddy")
}

// officeOf is how many people are behind the address of an office.
const officeOf = 10

// made returns all clients.
func made(o Options, r *rand.Rand) (all heap.Heap[*client]) {
	span, site := o.Span.Seconds(), pages(60)
	perClient := float64(o.Lines) * 0.75 / float64(o.Clients)
	for i := range o.Clients {
		length := 4 + r.IntN(24)
		c := &client{
			ip: fmt.Sprintf("198.51.%d.%d", i/250%256, 1+i%250), agent: browsers[r.IntN(len(browsers))], port: 1024 + r.IntN(60000),
			cookie: r.IntN(3) > 0, pause: 0.2 + r.Float64(), length: length, paths: site, status: ok,
			visits: span * float64(length) / perClient,
		}
		if i >= 64_000 {
			c.ip = fmt.Sprintf("2001:db8:%x::%x", i/65536, i%65536)
		}
		if i%40 == 0 {
			c.user = fmt.Sprintf("user%d", i)
		}
		all = append(all, c)
	}
	for i := range o.Offices * officeOf {
		all = append(all, &client{
			ip: fmt.Sprintf("203.0.113.%d", 10+i/officeOf), agent: browsers[i%len(browsers)], port: 2000 + i, works: true,
			cookie: true, pause: 2.5, visits: span / 24, length: 14, paths: site, status: ok,
		})
	}
	rate := func(share float64) float64 { return span / (float64(o.Lines) * share) }
	others := []*client{
		{ip: "203.0.113.7", agent: "python-requests/2.32.3", pause: 0.12, visits: span / 4, length: max(1, o.Lines*12/400), paths: pages(2000), status: func(r *rand.Rand) int {
			if r.IntN(25) == 0 {
				return 404
			}
			return 200
		}},
		{ip: "192.0.2.14", agent: browsers[0], cookie: true, pause: 0.7, visits: span / 6, length: max(1, o.Lines*6/600), paths: site, status: ok},
		{ip: "66.249.66.1", agent: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", pause: rate(0.03), visits: span, length: o.Lines, paths: site, status: ok},
		{ip: "203.0.113.80", agent: "sync-client/3.1", user: "warehouse", pause: rate(0.04), visits: span, length: o.Lines, paths: []string{"/api/stock", "/api/orders"}, status: ok},
	}
	for _, c := range others {
		c.port = 40000
		all = append(all, c)
	}
	for i, c := range all {
		c.next = r.Float64() * min(c.visits, span)
		if c.works {
			c.next = 9*3600 + 60*r.Float64()
		}
		c.left = c.length
		c.cookie = c.cookie && !o.NoCookies
		all[:i+1].Fix(i)
	}
	return all
}

// Write writes a log. Its lines are in the order in which the requests have ended.
func Write(to io.Writer, o Options) error {
	if o.Lines <= 0 || o.Clients <= 0 || o.Span <= 0 {
		return fmt.Errorf("there must be lines, clients and a span, got %+v", o)
	}
	r := rand.New(rand.NewPCG(o.Seed, 1))
	all := made(o, r)
	out := bufio.NewWriterSize(to, 1<<20)
	var buffer []byte
	line := (*client).line
	if o.Combined {
		line = (*client).combined
	}
	for range o.Lines {
		c := all[0]
		buffer = line(c, buffer[:0], r, o.Start.Add(time.Duration(c.next*float64(time.Second))))
		if _, err := out.Write(buffer); err != nil {
			return err
		}
		if c.left--; c.left > 0 {
			c.next += c.pause * r.ExpFloat64()
		} else {
			c.left = c.length
			c.next += c.visits * r.ExpFloat64() / day(c.next/o.Span.Seconds())
		}
		if days, hour := math.Modf(c.next / 86400); c.works && hour > 18.0/24 {
			c.next = (days + 1 + 9.0/24) * 86400
		}
		all.Fix(0)
	}
	return out.Flush()
}

// day is how busy the site is at a time from 0 to 1, where 1 is the average.
func day(at float64) float64 { return 1 - 0.7*math.Cos(2*math.Pi*(at-0.1)) }

// request draws what a line is about.
func (c *client) request(r *rand.Rand) (path string, status, size int) {
	path, status = c.paths[r.IntN(len(c.paths))], c.status(r)
	if size = 200 + r.IntN(40_000); status != 200 {
		size = 0
	}
	return path, status, size
}

// combined appends a line in the combined format.
func (c *client) combined(to []byte, r *rand.Rand, end time.Time) []byte {
	path, status, size := c.request(r)
	return fmt.Appendf(to, "%s - - [%s] \"GET %s HTTP/2.0\" %d %d \"-\" %q\n", c.ip, end.UTC().Format("02/Jan/2006:15:04:05 -0700"), path, status, size, c.agent)
}

// access is a line of an access log, as Caddy writes it.
const access = `{"level":"info","ts":%.7f,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"%[2]s","remote_port":"%d",` +
	`"client_ip":"%[2]s","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"%[4]s","headers":{"User-Agent":["%s"],` +
	`"Accept":["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],"Accept-Language":["en-US,en;q=0.5"],` +
	`"Accept-Encoding":["gzip, deflate, br, zstd"]%s},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2",` +
	`"server_name":"example.com","ech":false}},"bytes_read":0,"user_id":"%s","duration":%s,"size":%d,"status":%d,` +
	`"resp_headers":{"Server":["Caddy"],"Alt-Svc":["h3=\":443\"; ma=2592000"],"Content-Type":["text/html; charset=utf-8"],` +
	`"Vary":["Accept-Encoding"],"Etag":["\"dlq3bfnyswoc2ab\""]}}` + "\n"

// line appends a line as Caddy writes it.
func (c *client) line(to []byte, r *rand.Rand, end time.Time) []byte {
	path, status, size := c.request(r)
	more := ""
	if c.cookie {
		more = `,"Cookie":["REDACTED"],"Sec-Fetch-Site":["same-origin"],"Sec-Fetch-Mode":["navigate"]`
	}
	if c.user != "" {
		more += `,"Authorization":["REDACTED"]`
	}
	took := strconv.FormatFloat(math.Round(r.ExpFloat64()*2e7)/1e9, 'f', -1, 64)
	return fmt.Appendf(to, access, float64(end.UnixMicro())/1e6, c.ip, c.port, path, c.agent, more, c.user, took, size, status)
}
