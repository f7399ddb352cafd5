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
	p.sums(one, two)
	must(t, two.process.Kill())
	p.untilText("#instances", "silent")
	p.click("#fleet-on")
	p.untilText("#counted", "this instance only")
	p.noProblems()
}

// sums: networks of the whole fleet are the sums that clients have counted at both instances, and somebody with a keyboard alone
// can have them counted.
func (p *tab) sums(all ...*caddy) {
	p.t.Helper()
	p.enter("#networks-on")
	p.resize(360, 740, "dark")
	p.until("all to count", `import(new URL('api.js', document.baseURI)).then(m => m.call('GET', 'networks?fleet=1')).then(a => a.instances.length === 2 && a.instances.every(i => i.answer))`)
	sent, refused := 0, 0
	for i := range 24 {
		for _, c := range all[:1+i%2] { // the first has twice as many
			sent++
			if c.get("/from", "X-Forwarded-For: 203.0.113.7") == 429 {
				refused++
			}
		}
		all[0].get("/from", fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", i))
	}
	row := fmt.Sprintf(`[...document.querySelectorAll('#networks-body tbody tr')].some(r => r.innerText.includes(%s) && r.querySelector('.value').innerText.startsWith('%d (') && r.querySelector('[data-label=Refused]').innerText === '%d')`, quoted("203.0.113.7/32"), sent, refused)
	p.until("the network with "+fmt.Sprint(sent, " requests, ", refused, " refused"), row)
	p.untilText("#networks .terminal", "caddy rate-limit top --networks")
	p.until("nothing that is wider than the window", `document.documentElement.scrollWidth <= 360`)
	for _, scheme := range []string{"light", "dark"} {
		p.resize(360, 740, scheme)
		p.accessible("networks " + scheme)
	}
	p.named("networks")
	p.resize(1280, 900, "light")
}
