package browser

import (
	"net/http"
	"strings"
	"testing"
)

// testChanges: who has changed what is in a list, with the note, and marked in the curves of the zone. Reloads are, too.
func testChanges(t *testing.T, w *world) {
	zone := func(events string) string {
		return "\trate_limit {\n\t\tzone audited {\n\t\t\tkey {header.Client}\n\t\t\trate " + events + "/1h\n\t\t\toverrides\n\t\t}\n\t\tzone other {\n\t\t\trate 1000/1h\n\t\t}\n\t}\n\trespond ok"
	}
	c := startCaddy(t, "", zone("50"))
	p := w.browser.newTab(t)
	p.open(c.page("--no-open"))
	p.untilText("#changes-body", "start")
	request, err := http.NewRequest(http.MethodPut, "http://"+c.admin+"/rate_limit/zones/audited/key/override?key=ann", strings.NewReader(`{"limit": "500/1h", "note": "T-4711 <b>"}`))
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	must(t, response.Body.Close())
	c.reload("", zone("60"))
	p.untilText("#changes-body", "limit raised from sliding_window_log 50/1h")
	p.untilText("#changes-body", "T-4711 <b>")
	p.untilText("#changes-body", "127.0.0.1")
	c.get("/", "Client", "ann")
	p.click(`[data-zone=audited] button.open`)
	p.click(`[data-zone=other] button.open`)
	const label = `document.querySelector('[data-zone=%] .plot [role=img]')?.getAttribute('aria-label')`
	p.until("two marks in the curves of the zone", strings.Replace(label, "%", "audited", 1)+` === 'Requests per second in zone audited, with 2 changes'`)
	p.until("none in those of the other one", strings.Replace(label, "%", "other", 1)+` === 'Requests per second in zone other'`)
	p.noProblems()
}
