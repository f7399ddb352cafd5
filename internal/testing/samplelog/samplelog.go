// Package samplelog makes access logs of a day of made-up clients: people who read pages, offices behind one address, a
// crawler and a scraper.
package samplelog

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Options say what to make. The same options make the same log.
type Options struct {
	People    int
	Offices   int  // addresses of ten people each, who work from 9 to 18 o'clock
	NoCookies bool // the site has none
	Combined  bool // the combined format of nginx and Apache, which has no cookies, instead of Caddy's
}

// start is when the day begins.
var start = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// client is a person or a program that sends requests.
type client struct {
	ip, agent     string
	port          int
	cookie, works bool
	pause, visits time.Duration // between requests of a visit and between visits, on average
	length        int           // requests of a visit
}

var browsers = []string{
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
	"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
}

// clients returns all of them.
func clients(o Options, r *rand.Rand) (all []client) {
	for i := range o.People {
		all = append(all, client{
			ip: fmt.Sprintf("198.51.%d.%d", i/250%256, 1+i%250), agent: browsers[r.IntN(len(browsers))], port: 1024 + i, cookie: r.IntN(3) > 0,
			pause: 200*time.Millisecond + time.Duration(r.Int64N(1e9)), visits: day * 2 / 3, length: 4 + r.IntN(24),
		})
	}
	for i := range 10 * o.Offices {
		all = append(all, client{
			ip: fmt.Sprintf("203.0.113.%d", 10+i/10), agent: browsers[i%len(browsers)], port: 2000 + i, cookie: true, works: true,
			pause: 2500 * time.Millisecond, visits: time.Hour, length: 14,
		})
	}
	return append(all,
		client{ip: "203.0.113.7", agent: "python-requests/2.32.3", port: 4000, pause: 120 * time.Millisecond, visits: day / 4, length: 1800},
		client{ip: "66.249.66.1", agent: "Mozilla/5.0 (compatible; Googlebot/2.1)", port: 4001, pause: 48 * time.Second, visits: day, length: 1800},
	)
}

// line is what a request leaves in the log.
type line struct {
	at   time.Duration
	text string
}

// Write writes a log in the order of time.
func Write(to io.Writer, o Options) error {
	r := rand.New(rand.NewPCG(1, 1))
	var lines []line
	for _, c := range clients(o, r) {
		c.cookie = c.cookie && !o.NoCookies
		for at := time.Duration(r.Int64N(int64(min(c.visits, day)))); at < day; at += around(r, c.visits) {
			for range c.length {
				if hour := at / time.Hour; !c.works || 9 <= hour && hour < 18 {
					lines = append(lines, line{at, c.line(o, r, start.Add(at))})
				}
				at += around(r, c.pause)
			}
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	for _, l := range lines {
		if _, err := io.WriteString(to, l.text); err != nil {
			return err
		}
	}
	return nil
}

// around is a time that is drawn around an average.
func around(r *rand.Rand, average time.Duration) time.Duration {
	return time.Duration(float64(average) * math.Min(r.ExpFloat64(), 10))
}

// inCaddysLog is a line as Caddy writes it.
const inCaddysLog = `{"level":"info","ts":%.7f,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":%[2]q,"remote_port":"%[3]d",` +
	`"client_ip":%[2]q,"proto":"HTTP/2.0","method":"GET","host":"example.com","uri":%[4]q,"headers":{"User-Agent":[%[5]q]%[6]s},` +
	`"tls":{"resumed":false,"version":772,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"duration":0.002,"size":2100,"status":200}` + "\n"

// line draws what a request is about.
func (c *client) line(o Options, r *rand.Rand, end time.Time) string {
	path := fmt.Sprintf("/articles/%d", r.IntN(60))
	if o.Combined {
		return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/2.0\" 200 2100 \"-\" %q\n", c.ip, end.Format("02/Jan/2006:15:04:05 -0700"), path, c.agent)
	}
	cookie := strings.Repeat(`,"Cookie":["REDACTED"]`, map[bool]int{true: 1}[c.cookie])
	return fmt.Sprintf(inCaddysLog, float64(end.UnixMicro())/1e6, c.ip, c.port, path, c.agent, cookie)
}
