package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// run1 is what the hostile texts would have a browser do.
const run1 = "window.ran=1"

// evilZones are names of zones that markup, addresses and layouts should not trip over.
var evilZones = []string{
	"<img src=x onerror=" + run1 + ">", "</title><script>" + run1 + "</script>", "\u202egnp.exe", "a/b?c#d%2e", "zone with spaces", "'; " + run1 + " //", "-h", "$(id)",
	strings.Repeat("long-", 40), "__proto__", "\u0645\u0646\u0637\u0642\u0629", "{{constructor.constructor('" + run1 + "')()}}",
}

// hostile are texts that clients may send as a key or a user agent.
func hostile() []string {
	every := make([]byte, 0, 256)
	for b := 1; b < 256; b++ {
		if b != '\r' && b != '\n' && (b >= ' ' || b == '\t') && b != 127 { // what a header may have
			every = append(every, byte(b))
		}
	}
	texts := []string{
		"<script>" + run1 + "</script>", "<img src=x onerror=" + run1 + ">", "<svg onload=" + run1 + ">", "\"><script>" + run1 + "</script>", "'><img src=x onerror=" + run1 + ">",
		"javascript:" + run1, "<a href=javascript:" + run1 + ">x</a>", "<iframe srcdoc='<script>parent." + run1 + "</script>'>", "</script><script>" + run1 + "</script>", "<body onload=" + run1 + ">",
		"<math><mtext></table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=" + run1 + "&gt;\">", "${" + run1 + "}", "{{" + run1 + "}}", "`${" + run1 + "}`", "\\u003cscript\\u003e" + run1,
		"&lt;script&gt;" + run1 + "&lt;/script&gt;", "&#60;img src=x onerror=" + run1 + "&#62;", "%3Cscript%3E" + run1 + "%3C/script%3E", "<style>*{display:none}</style>", "<link rel=stylesheet href=//127.0.0.1:1/x>",
		"<base href=//127.0.0.1:1/>", "<meta http-equiv=refresh content='0;url=//127.0.0.1:1/'>", "<form action=//127.0.0.1:1/><input name=a>", "<template><script>" + run1 + "</script></template>", "<!--", "]]>", "-->",
		"data: {\"a\": 1}", "event: start", "\u2028" + run1 + "\u2029", "\u202e" + "elbisivni", "\u2066\u202eabc\u2069", "\u200b\u200c\u200d\ufeff", "\u00ad\u00a0\u3000 x", "\u05e9\u05dc\u05d5\u05dd", "a\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308" + strings.Repeat("\u0336", 60),
		string(every), "\xff\xfe\x80", "\xc0\xaf", "\xed\xa0\x80", "__proto__", "constructor", "toString", "../../config/", "a b  c", "'; rm -rf ~; echo '", "$(touch never)`touch never`", "-n", "--help", "~root", "=ls", "*", "!!", "\\", "\tx\t",
		strings.Repeat("W", 5000), strings.Repeat("\U0001F469\u200d\U0001F469\u200d\U0001F467", 40), strings.Repeat("x ", 200), strings.Repeat("<b>", 34000), // 100 kB
	}
	return texts
}

// send sends a request with fields as they are, whatever bytes they have.
func (c *caddy) send(t *testing.T, path, client, agent string) {
	t.Helper()
	conn, err := net.Dial("tcp", c.site)
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nClient: %s\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n", path, c.site, client, agent)
	must(t, err)
	answer := make([]byte, 12)
	_, err = conn.Read(answer)
	must(t, err)
	if got := string(answer); got != "HTTP/1.1 429" && got != "HTTP/1.1 200" {
		t.Fatalf("%.40q: %s", client, got)
	}
}

// testHostile: keys, user agents and names of zones are shown, and never run. None breaks the layout. The
// command for a key names exactly this key.
func testHostile(t *testing.T, w *world) {
	texts := hostile()
	if len(texts) < 50 {
		t.Fatalf("only %d texts", len(texts))
	}
	site := strings.Replace(fleetSite(), "zone `clients`", "zone victims", 1)
	c := startCaddy(t, "\tservers {\n\t\tmax_header_size 1MB\n\t}\n", site)
	p := w.browser.newTab(t)
	p.resize(360, 740, "light")
	p.open(c.page())
	p.untilText("#link", "live")
	check := func(where string) {
		t.Helper()
		found := eval[struct {
			Ran        bool
			Wide       int
			Beyond     string
			Tall       float64
			Elements   string
			Directions int
		}](p, `({
			Ran: window.ran !== undefined || !/^(\d+ refused – )?Rate limits$/.test(document.title),
			Wide: document.documentElement.scrollWidth - innerWidth,
			Beyond: [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.skip')).slice(0, 5).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40)).join(', '),
			Tall: Math.max(0, ...[...document.querySelectorAll('.refused tbody tr, .decisions tbody tr, .zones > tbody > tr:not(.detail)')].map(e => e.getBoundingClientRect().height)),
			Elements: [...document.querySelectorAll('main :is(script, img, iframe, style, link, base, meta, object, embed, b, template)')].map(e => e.outerHTML.slice(0, 80)).join(),
			Directions: [...document.body.innerText].filter(c => /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2028\u2029\ufeff]/.test(c)).length,
		})`)
		if found.Ran || found.Wide > 0 || found.Tall > 500 || found.Elements != "" || found.Directions > 0 {
			t.Errorf("%s: %+v", where, found)
		}
	}
	for from := 0; from < len(texts); from += 15 {
		some := texts[from:min(len(texts), from+15)]
		for _, text := range some {
			for range 2 {
				c.send(t, "/plain", text, text)
			}
		}
		p.until(fmt.Sprintf("the texts from %d on", from), fmt.Sprintf(`(() => {
			window.all ??= new Map()
			for (const b of document.querySelectorAll('.refused [aria-label^="Let through"]')) all.set(b.getAttribute('aria-label'), b.closest('tr').innerText)
			return all.size >= %d
		})()`, min(20, from+len(some))))
		check(fmt.Sprintf("texts from %d on", from))
	}
	for i := range evilZones {
		for range 2 {
			c.send(t, fmt.Sprintf("/evil/%d", i), "victim", "<img src=x onerror="+run1+">")
		}
	}
	longest := texts[len(texts)-1]
	for range 20 {
		c.send(t, "/plain", longest, longest)
	}
	p.until("the length of the longest, which comes most often", `document.querySelector('.refused').innerText.includes('beginning of 102,000 bytes')`)
	check("the longest")
	p.until("all zones", fmt.Sprintf(`document.querySelectorAll('[data-zone]').length === %d`, 6+len(evilZones)))
	p.until("refusals in the zones", `document.querySelector('.refused').innerText.includes('8 more zones')`)
	check("zones")
	p.resize(1280, 900, "dark")
	check("wide")

	// The command of each key, as a shell reads it.
	var said []struct{ Key, Command string }
	must(t, p.try(`(async () => {
		const { command } = await import(new URL('shell.js', document.baseURI)), said = []
		const texts = `+encoded(texts)+`
		for (const t of texts) {
			const bytes = Uint8Array.from(atob(t), c => c.charCodeAt(0))
			let key = {key_base64: t}
			try { key = {key: new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(bytes)} } catch {}
			said.push({key: t, command: command('', 'reset', {name: "it's", key: '{a}'}, key)})
		}
		return said
	})()`, &said))
	script := "caddy() { for a in \"$@\"; do printf '%s' \"$a\" | base64 -w0; echo; done; echo end; }\n"
	for _, s := range said {
		script += s.Command + "\n"
	}
	cmd := exec.Command("bash", "-s")
	cmd.Stdin = strings.NewReader(script)
	output, err := cmd.CombinedOutput()
	must(t, err)
	groups := strings.Split(strings.TrimSuffix(string(output), "end\n"), "end\n")
	if len(groups) != len(texts) {
		t.Fatalf("%d commands ran, want %d: %.500s", len(groups), len(texts), output)
	}
	for i, group := range groups {
		var words []string
		for line := range strings.Lines(group) {
			word, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
			must(t, err)
			words = append(words, string(word))
		}
		text := texts[i]
		want := []string{"rate-limit", "reset", "it's", text}
		if strings.HasPrefix(text, "-") {
			want = []string{"rate-limit", "reset", "--", "it's", text}
		}
		if got := strings.Join(words, "\x00"); got != strings.Join(want, "\x00") {
			t.Errorf("the command %.200s has the words %.200q", said[i].Command, words)
		}
	}

	// And one that is clicked, in a zone with an odd name.
	p.untilText(".refused", "$(id)")
	p.click(`.refused [aria-label="Let through: victim in zone a/b?c#d%2e"]`)
	p.confirm()
	p.untilText("#news", "Let through victim in zone a/b?c#d%2e")
	if s := c.state("a/b?c#d%2e", "victim"); s.Used != 0 {
		t.Errorf("the reset has no effect: %+v", s)
	}
	check("in the end")
	p.noProblems()
}

// encoded returns texts in base64, as JavaScript has a list.
func encoded(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	list, _ := json.Marshal(all)
	return string(list)
}
