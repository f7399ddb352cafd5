package browser

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestWholeFleet: the page of one instance shows the counts of all that share its store, and which ones these are.
func TestWholeFleet(t *testing.T) {
	browser, redis := startChromium(t), redistest.Start(t)
	options := "servers {\ntrusted_proxies static 127.0.0.0/8\n}\nrate_limit {\nstore redis {\naddress " + redis.Addr() + "\n}\n}"
	site := "rate_limit {\nzone shared {\nmatch path /\nkey {header.Client}\nevents 5\nwindow 1h\n}\nzone from {\nmatch path /from\nkey {client_ip}\nevents 5\nwindow 1h\n}\n}\nrespond ok"
	one, two := startCaddy(t, options, site), startCaddy(t, options, site)
	p := browser.newTab(t)
	p.open(one.page())
	p.until("the switch", `!document.getElementById('fleet').hidden`)
	two.times(7, "/", "Client: tom")
	one.times(2, "/", "Client: ann")
	p.untilText("#counted", "this instance only")
	p.click("#fleet-on")
	p.untilText("#counted", "2 instances")
	p.untilText("#instances", "this one")
	p.untilText("#instances", fmt.Sprintf("(process %d)", two.process.PID()))
	p.untilText("#refused-body", "tom")
	must(t, two.process.Kill())
	p.untilText("#instances", "silent")
	p.click("#fleet-on")
	p.untilText("#counted", "this instance only")
	p.noProblems()
}
