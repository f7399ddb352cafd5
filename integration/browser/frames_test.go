package browser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// traced is an event of Chromium's trace. Times are in microseconds; Used is what the processor has spent.
type traced struct {
	Name string  `json:"name"`
	At   float64 `json:"ts"`
	Took float64 `json:"dur"`
	Used float64 `json:"tdur"`
	PID  int     `json:"pid"`
	TID  int     `json:"tid"`
	Args struct {
		Name string `json:"name"`
	} `json:"args"`
}

// trace records what the browser does until the returned function is called, which returns it.
func (c *chromium) trace(t *testing.T) func() []traced {
	var mu sync.Mutex
	var all []traced
	done := make(chan struct{})
	c.mu.Lock()
	c.tabs[""] = func(method string, params json.RawMessage) {
		switch method {
		case "Tracing.dataCollected":
			var data struct{ Value []traced }
			if json.Unmarshal(params, &data) == nil {
				mu.Lock()
				all = append(all, data.Value...)
				mu.Unlock()
			}
		case "Tracing.tracingComplete":
			close(done)
		}
	}
	c.mu.Unlock()
	must(t, c.call("", "Tracing.start", map[string]any{"traceConfig": map[string]any{"includedCategories": []string{"devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata"}}}, nil))
	return func() []traced {
		must(t, c.call("", "Tracing.end", nil, nil))
		<-done
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// longest returns the tasks of the page's main thread that used most of the processor, each with its largest parts.
func longest(all []traced, n int) (told []string) {
	main := map[[2]int]bool{}
	for _, e := range all {
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			main[[2]int{e.PID, e.TID}] = true
		}
	}
	var tasks, parts []traced
	for _, e := range all {
		switch {
		case !main[[2]int{e.PID, e.TID}]:
		case e.Name == "RunTask":
			tasks = append(tasks, e)
		case e.Used > 0:
			parts = append(parts, e)
		}
	}
	slices.SortFunc(tasks, func(a, b traced) int { return cmp.Compare(b.Used, a.Used) })
	for _, task := range tasks[:min(n, len(tasks))] {
		sums := map[string]float64{}
		for _, e := range parts {
			if e.PID == task.PID && e.TID == task.TID && e.At >= task.At && e.At < task.At+task.Took {
				sums[e.Name] += e.Used
			}
		}
		names := make([]string, 0, len(sums))
		for name := range sums {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
		text := fmt.Sprintf("%.1f ms:", task.Used/1000)
		for _, name := range names[:min(8, len(names))] {
			text += fmt.Sprintf(" %s %.1f", name, sums[name]/1000)
		}
		told = append(told, text)
	}
	return told
}

// TestFrames tells what the longest tasks of the page use of a processor, while thousands of clients are refused: FRAMES=1.
func TestFrames(t *testing.T) {
	if os.Getenv("FRAMES") == "" {
		t.Skip("FRAMES=1 measures the longest tasks")
	}
	w := &world{browser: startChromium(t)}
	p, n, send := w.many(t)
	for *n < 10000 {
		send()
	}
	p.click("#refused-all")
	p.untilDoing("many rows", send, `document.querySelectorAll('.refused tbody tr').length >= 100`)
	must(t, p.try(`import(new URL('stream.js', document.baseURI)).then(m => { window.seconds = 0; m.listen(what => { if (what === 'second') seconds++ }) })`, nil))
	paced := func() { send(); time.Sleep(time.Second) }
	for _, width := range []int{1280, 900, 360} {
		p.resize(width, 900, "light")
		p.events(2)
		before, end, since := p.busy(), w.browser.trace(t), eval[int](p, `seconds`)
		p.untilDoing("ten events", paced, fmt.Sprintf(`seconds >= %d`, since+10))
		took, seconds := p.busy()-before, eval[int](p, `seconds`)-since
		t.Logf("%d px, %d clients: %v of the processor for each of %d events; the longest tasks:\n%s", width, *n, took/time.Duration(seconds), seconds, strings.Join(longest(end(), 8), "\n"))
	}
}
