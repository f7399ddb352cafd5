package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// world is what the tests share: a browser, and a fleet of two instances with a Redis.
type world struct {
	browser  *chromium
	redis    *redistest.Server
	one, two *caddy
	address  string // of the page of the first Caddy
}

// TestPage clicks through the page. Each part has clients of its own.
func TestPage(t *testing.T) {
	w := &world{browser: startChromium(t), redis: redistest.Start(t)}
	w.one, w.two = startCaddy(t, store(w.redis), fleetSite()), startCaddy(t, store(w.redis), fleetSite())
	w.address = w.one.page()
	for _, part := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"Zones", testZones},
		{"Refused", testRefused},
		{"Actions", testActions},
		{"Bans", testBans},
		{"Why", testWhy},
		{"Decisions", testDecisions},
		{"Stores", testStores},
		{"KeysAlone", testKeysAlone},
		{"Focus", testFocus},
		{"Commands", testCommands},
		{"Locale", testLocale},
		{"Accessible", testAccessible},
		{"Hostile", testHostile},
		{"Find", testFind},
		{"Client", testClient},
		{"Menus", testMenus},
		{"Networks", testNetworks},
		{"Touch", testTouch},
		{"ManyKeys", testManyKeys},
		{"Closed", testClosed},
		{"Gateway", testGateway},
		{"OtherOrigins", testOtherOrigins},
		{"BehindAuthentication", testBehindAuthentication},
		{"Reload", testReload},
		{"Outage", testOutage},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, w)
		})
	}
}

func store(redis *redistest.Server) string {
	return "\trate_limit {\n\t\tstore redis {\n\t\t\taddress " + redis.Addr() + "\n\t\t\ttimeout 10s\n\t\t}\n\t}\n"
}

// fleetSite is the site of the fleet. The clients name themselves.
func fleetSite() string {
	zones := ""
	zone := func(name, path, options string) {
		zones += "zone `" + name + "` {\nmatch path " + path + "\n" + options + "\n}\n"
	}
	zone("clients", "/", "key {header.Client}\nrate 5/1h\noverrides")
	zone("logins", "/login", "key \"{header.Client} {header.User}\"\nalgorithm token_bucket 3/1h\noverrides\nban 10m after 3 refusals in 1m")
	zone("trial", "/trial", "key {header.Client}\nrate 1/1h\ncharge {\njson cost\n}\nenforce 0")
	zone("half", "/half", "key {header.Client}\nrate 1/1h\nenforce 50")
	zone("plain", "/plain", "key {header.Client}\nrate 1/1h")
	zone("hot", "/hot", "rate 1000000/1h\nlend 100ms")
	for i, name := range evilZones {
		zone(name, fmt.Sprintf("/evil/%d", i), "key {header.Client}\nrate 1/1h\noverrides")
	}
	return "rate_limit {\n" + zones + "}\nrespond ok"
}

// page opens the page.
func (w *world) page(t *testing.T) *tab {
	t.Helper()
	p := w.browser.show(t, w.address)
	p.untilText("#link", "live")
	t.Cleanup(p.noProblems)
	return p
}

// times sends n requests of a client, and returns how many were admitted.
func (c *caddy) times(n int, path string, fields ...string) (admitted int) {
	c.t.Helper()
	for range n {
		if c.get(path, fields...) == http.StatusOK {
			admitted++
		}
	}
	return admitted
}

// state is what the admin API says of a key.
type state struct {
	Outcome   string
	Used      int64
	Remaining int64
	Override  *struct {
		Kind, Limit, Note string
		Until             time.Time
	}
	Ban *struct{ By string }
}

// state asks a Caddy about a key.
func (c *caddy) state(zone string, parts ...string) (s state) {
	c.t.Helper()
	query := url.Values{"part": parts}
	response, err := http.Get("http://" + c.admin + "/rate_limit/zones/" + url.PathEscape(zone) + "/key?" + query.Encode())
	must(c.t, err)
	defer response.Body.Close()
	must(c.t, json.NewDecoder(response.Body).Decode(&s))
	return s
}

// button is the selector of an action on a key.
func button(label, key, zone string) string {
	return fmt.Sprintf(`.refused [aria-label=%s]`, quoted(label+": "+key+" in zone "+zone))
}

// confirm confirms the dialog, and returns the command that it showed.
func (p *tab) confirm() (command string) {
	p.t.Helper()
	p.until("the dialog", `document.getElementById('dialog').open`)
	command = p.text("#dialog-command")
	p.click("#dialog-yes")
	p.until("the end of the dialog", `!document.getElementById('dialog').open`)
	return command
}

// shell runs a command as a shell does, with the Caddy that the page has shown.
func shell(t *testing.T, command string) {
	t.Helper()
	binary, err := buildCaddy()
	must(t, err)
	cmd := exec.Command("bash", "-c", `caddy() { "$CADDY" "$@"; }; `+command)
	cmd.Env = append(cmd.Environ(), "CADDY="+binary)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, output)
	}
}

// testZones: zones with their limits in words, how far they are enforced, rates, and what is behind them.
func testZones(t *testing.T, w *world) {
	p := w.page(t)
	for zone, want := range map[string]string{"clients": "5 per hour", "trial": "dry run", "half": "enforce 50 %", "logins": "3 per hour", "hot": "1,000,000 per hour"} {
		p.untilText(fmt.Sprintf("[data-zone=%s]", zone), want)
	}
	p.untilText("#sentence", fmt.Sprintf("%d zones.", 6+len(evilZones)))
	p.untilText("#caddy", fmt.Sprintf("process %d", w.one.process.PID()))
	p.click("[data-zone=trial] .open")
	w.one.times(4, "/trial", "Client: zoe")
	p.untilText("[data-zone=trial] .detail .outcomes", "dry run")
	p.untilText("[data-zone=trial] .costs", "unknown")
	p.untilText("[data-zone=trial] .costs", "total cost")
	p.until("the curve", `document.querySelector('[data-zone=trial] .spark .no .line')?.getAttribute('d')`)
	p.untilText("[data-zone=trial] .top", "zoe")
	p.untilText("[data-zone=trial] [data-label='Would be refused']", "%")
	p.click("[data-zone=trial] .open")
	p.until("the end of the panel", `document.querySelector('[data-zone=trial] .detail').hidden`)
}

// testRefused: who is refused now, how long the wait is, and what the last request was.
func testRefused(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(8, "/", "Client: rita", "User-Agent: rita's agent")
	row := `[...document.querySelectorAll('.refused tbody tr')].find(r => r.textContent.includes('rita'))`
	for _, want := range []string{"3 of 8", "zone clients"} {
		p.until(want+" in the row", row+`?.textContent.includes(`+quoted(want)+`)`)
	}
	// The last request comes from a sample of the refusals, of all zones together.
	refused := func() { w.one.times(1, "/", "Client: rita", "User-Agent: rita's agent") }
	for _, want := range []string{"min", "rita's agent", "GET /"} {
		p.untilDoing(want+" in the row", refused, row+`?.innerText.includes(`+quoted(want)+`)`)
	}
	p.untilDoing("a client that is refused now", refused, `document.getElementById('sentence').innerText.includes('being refused now') && document.getElementById('level').innerText === 'Refusing'`)
	p.until("when it was refused last", row+`?.querySelector('[data-label="Last refused"]').innerText.match(/now|ago/)`)
	w.one.times(3, "/trial", "Client: tom")
	p.untilText(".refused", "tom")
	p.until("a mark for the dry run", `[...document.querySelectorAll('.refused tbody tr')].find(r => r.textContent.includes('tom'))?.innerText.includes('dry run')`)
	p.until("dry runs after all that is refused", `(() => {
		const rows = [...document.querySelectorAll('.refused tbody tr')], heading = rows.findIndex(r => r.matches('.heading'))
		const dry = rows.map(r => r === rows[heading] || r.innerText.includes('dry run') || r.innerText.includes('enforced'))
		return heading > 0 && dry.indexOf(true) === heading && !dry.slice(heading).includes(false)
	})()`)
	both := func() { refused(); w.one.times(1, "/trial", "Client: tom") }
	p.untilDoing("the same number of clients in the sentence and the heading", both, `(() => {
		const sentence = document.getElementById('sentence').innerText, now = /(\d+ clients?) (is|are) being refused now/.exec(sentence)?.[1]
		const more = /(\d+) more would be refused if dry runs were enforced/.exec(sentence)?.[1]
		return now && document.getElementById('refused-note').innerText.startsWith(now + ' now,') &&
			more && document.querySelector('.refused .heading').innerText.startsWith(more + ' more client')
	})()`)
	p.untilDoing("a client that is refused right now has a wait", refused, row+`?.querySelector('[data-label="Last refused"]').innerText === 'now' && !/over|–/.test(`+row+`.querySelector('[data-label="Wait"]').innerText)`)
	w.one.times(3, "/plain", "Client: pia")
	p.untilText(".refused", "pia")
	p.click(button("Ban", "pia", "plain. This zone has no overrides: add the option overrides to it."))
	p.untilText("#news", "add the option overrides")
}

// testActions: each button asks first, shows the command, and has its effect on the whole fleet.
func testActions(t *testing.T, w *world) {
	p := w.page(t)
	address := " --address " + w.one.admin
	if got := w.one.times(8, "/", "Client: max", "User-Agent: a") + w.two.times(2, "/", "Client: max"); got != 5 {
		t.Fatalf("%d of 10 requests are admitted, want 5", got)
	}
	p.click(button("Let through", "max", "clients"))
	p.until("the dialog", `document.getElementById('dialog').open`)
	p.press("Escape")
	p.until("the end of the dialog", `!document.getElementById('dialog').open`)
	if used := w.two.state("clients", "max").Used; used != 5 {
		t.Errorf("an action that was not confirmed has changed what is used to %d", used)
	}
	p.click(button("Let through", "max", "clients"))
	if got, want := p.confirm(), "caddy rate-limit reset"+address+" clients max"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	p.untilText("#news", "Let through max")
	row := `[...document.querySelectorAll('.refused tbody tr')].find(r => r.textContent.includes('max'))`
	p.until("a mark with the time", row+`.innerText.match(/let through \d+:\d\d:\d\d.[AP]M/) && `+row+`.matches('.past') && `+row+`.querySelector('[data-label=Wait]').innerText === '–'`)
	if got := w.two.times(7, "/", "Client: max"); got != 5 {
		t.Errorf("after the reset the other instance admits %d, want 5", got)
	}

	w.one.times(1, "/", "Client: max")
	p.click(button("Raise", "max", "clients"))
	p.until("the dialog", `document.getElementById('dialog').open`)
	if got, want := p.text("#dialog-command"), "caddy rate-limit set"+address+" --for 2h clients max 10"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	p.write("#field-limit", "nonsense")
	p.click("#dialog-yes")
	p.untilText("#dialog-error", "nonsense")
	p.takeProblems() // the browser logs the status 400
	p.write("#field-limit", "8")
	p.confirm()
	p.untilText("#news", "Raised max")
	if o := w.two.state("clients", "max").Override; o == nil || o.Kind != "limit" || time.Until(o.Until) < 7000*time.Second || time.Until(o.Until) > 7200*time.Second {
		t.Errorf("the override is %+v", o)
	}
	if got := w.two.times(5, "/", "Client: max"); got != 3 {
		t.Errorf("with a limit of 8, of which 5 are used, the other instance admits %d, want 3", got)
	}

	refused := func() { w.one.times(1, "/", "Client: max") }
	p.untilDoing("a row without the mark", refused, `!`+row+`.innerText.includes('raised')`)
	p.click(`.refused [aria-label="Why? max in zone clients"]`)
	p.untilText("#why-body", "8 of 8 used.")
	p.untilText("#why-body", "sliding_window_log 8/1h, until ")
	p.click(button("Exempt", "max", "clients"))
	if got, want := p.confirm(), "caddy rate-limit set"+address+" --exempt clients max"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	p.untilText("#news", "Exempted max")
	if got := w.two.times(9, "/", "Client: max"); got != 9 {
		t.Errorf("an exempt key is admitted %d times of 9", got)
	}

	p.click(button("Ban", "max", "clients"))
	p.until("the dialog", `document.getElementById('dialog').open`)
	p.choose("#field-for", "1 day")
	if got, want := p.confirm(), "caddy rate-limit ban"+address+" --for 1d clients max"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	p.untilText("#news", "Banned max")
	if got := w.two.times(2, "/", "Client: max") + w.one.times(2, "/", "Client: max"); got != 0 {
		t.Errorf("a banned key is admitted %d times", got)
	}
	p.untilDoing("a ban", refused, row+`.querySelector('[data-label=Wait]').innerText === 'until the ban ends'`)
	p.click(button("Unban", "max", "clients"))
	if got, want := p.confirm(), "caddy rate-limit unban"+address+" clients max"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	p.untilText("#news", "Unbanned max")
	if s := w.two.state("clients", "max"); s.Ban != nil {
		t.Errorf("the ban remains: %+v", s)
	}
}

// testBans: bans and overrides in force are listed, and can be ended there.
func testBans(t *testing.T, w *world) {
	p := w.page(t)
	w.one.times(7, "/login", "Client: bob", "User: robert")
	shell(t, "caddy rate-limit set --address "+w.one.admin+" --note 'a <b>note</b>' clients betty 77/1h")
	p.click("#rules-load")
	p.untilText("#rules-body", "banned by the zone")
	p.untilText("#rules-body", "77")
	p.untilText("#rules-body", "a <b>note</b>")
	p.click(`.rules [aria-label^="Unban: bob robert"]`)
	p.confirm()
	p.until("no ban of bob", `![...document.querySelectorAll('.rules tbody tr')].some(r => r.textContent.includes('bob'))`)
	if s := w.two.state("logins", "bob", "robert"); s.Ban != nil {
		t.Errorf("the ban remains: %+v", s)
	}
	p.click(`.rules [aria-label^="Clear: betty"]`)
	if command := p.confirm(); !strings.HasSuffix(command, " --clear clients betty") {
		t.Errorf("the command is %s", command)
	}
	p.until("no override of betty", `![...document.querySelectorAll('.rules tbody tr')].some(r => r.textContent.includes('betty'))`)
	if s := w.two.state("clients", "betty"); s.Override != nil {
		t.Errorf("the override remains: %+v", s)
	}
}
