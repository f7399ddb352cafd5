package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// tab is a page in the browser.
type tab struct {
	t       testing.TB
	browser *chromium
	session string

	mu       sync.Mutex
	problems []string // what the console shows as errors
}

// newTab opens an empty page, which is closed when the test ends.
func (c *chromium) newTab(t testing.TB) *tab {
	t.Helper()
	p := &tab{t: t, browser: c}
	var target struct {
		ID string `json:"targetId"`
	}
	var attached struct {
		ID string `json:"sessionId"`
	}
	must(t, c.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	must(t, c.call("", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached))
	p.session = attached.ID
	c.mu.Lock()
	c.tabs[p.session] = p.event
	c.mu.Unlock()
	t.Cleanup(func() { _ = c.call("", "Target.closeTarget", map[string]any{"targetId": target.ID}, nil) })
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.do(domain+".enable", nil, nil)
	}
	p.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil) // other tabs would hide it
	return p
}

// show opens an address in a window of the usual size.
func (c *chromium) show(t testing.TB, address string) *tab {
	t.Helper()
	p := c.newTab(t)
	p.resize(1280, 900, "light")
	p.open(address)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do has the tab carry out a command.
func (p *tab) do(method string, params map[string]any, result any) {
	p.t.Helper()
	must(p.t, p.browser.call(p.session, method, params, result))
}

// event notes what goes wrong in the page.
func (p *tab) event(method string, params json.RawMessage) {
	problem := ""
	switch method {
	case "Runtime.exceptionThrown":
		problem = string(params)
	case "Runtime.consoleAPICalled":
		var e struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(params, &e) == nil && (e.Type == "error" || e.Type == "assert") {
			problem = string(params)
		}
	case "Log.entryAdded":
		var e struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(params, &e) == nil && e.Entry.Level == "error" {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if problem != "" {
		p.mu.Lock()
		p.problems = append(p.problems, problem)
		p.mu.Unlock()
	}
}

// noProblems fails the test if the console has shown an error.
func (p *tab) noProblems() {
	p.t.Helper()
	for _, problem := range p.takeProblems() {
		p.t.Errorf("the console shows an error: %s", problem)
	}
}

// noProblemsBut is noProblems, except for errors that have a text.
func (p *tab) noProblemsBut(text string) {
	p.t.Helper()
	for _, problem := range p.takeProblems() {
		if !strings.Contains(problem, text) {
			p.t.Errorf("the console shows an error: %s", problem)
		}
	}
}

func (p *tab) takeProblems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.problems
	p.problems = nil
	return taken
}

// open goes to an address.
func (p *tab) open(address string) {
	p.t.Helper()
	p.do("Page.navigate", map[string]any{"url": address}, nil)
}

// try evaluates an expression, which may be a promise, into the result.
func (p *tab) try(expression string, result any) error {
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Failed *struct {
			Exception struct{ Description string } `json:"exception"`
			Text      string
		} `json:"exceptionDetails"`
	}
	err := p.browser.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &answer)
	switch {
	case err != nil:
		return err
	case answer.Failed != nil:
		return fmt.Errorf("%s: %s %s", expression, answer.Failed.Text, answer.Failed.Exception.Description)
	case result == nil || answer.Result.Value == nil:
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

// eval evaluates an expression that must not fail.
func eval[T any](p *tab, expression string) (result T) {
	p.t.Helper()
	must(p.t, p.try(expression, &result))
	return result
}

// until waits until an expression is true.
func (p *tab) until(what, expression string) {
	p.t.Helper()
	p.untilDoing(what, func() {}, expression)
}

// untilDoing waits until an expression is true, and does something as long as it is not.
func (p *tab) untilDoing(what string, do func(), expression string) {
	p.t.Helper()
	var last error
	for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
		var is bool
		if last = p.try("(async () => Boolean(await ("+expression+")))()", &is); last == nil && is {
			return
		}
		do()
		if time.Now().After(deadline) {
			p.t.Fatalf("waited %v for %s: %v\nconsole: %q\nthe page shows:\n%s", patience(), what, last, p.takeProblems(), p.text("body"))
		}
	}
}

// patience is how long to wait for something that never comes. PATIENCE shortens it, to look for a
// mistake.
func patience() time.Duration {
	if short, err := time.ParseDuration(os.Getenv("PATIENCE")); err == nil {
		return short
	}
	return patient.Patience
}

// text returns what is read in the elements of a selector.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll(%s)].map(e => e.innerText).join('\n')`, quoted(selector)))
}

// untilText waits until the elements of a selector have a text.
func (p *tab) untilText(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.innerText.includes(%s))`, quoted(selector), quoted(text)))
}

// click clicks on an element, once it is there and a mouse would reach it, also in a menu. The page may move at any time,
// so that it is found and clicked in one step.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.until("a click on "+selector, fmt.Sprintf(`(() => {
		const e = document.querySelector(%s)
		if (!e || e.disabled) return false
		if (e.tagName !== 'SUMMARY') e.closest('details:not([open])')?.setAttribute('open', '')
		e.scrollIntoView({block: 'center', behavior: 'instant'})
		const r = e.getBoundingClientRect(), at = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)
		if (!at || !e.contains(at)) return false
		e.focus()
		e.click()
		return true
	})()`, quoted(selector)))
}

// press presses keys by their names: Tab, Enter, Escape, Space.
func (p *tab) press(names ...string) {
	p.t.Helper()
	for _, name := range names {
		params := map[string]any{"key": name, "code": name, "windowsVirtualKeyCode": map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "ArrowDown": 40}[name]}
		switch name {
		case "Enter":
			params["text"] = "\r"
		case "Space":
			params["key"], params["text"] = " ", " "
		}
		params["type"] = "keyDown"
		p.do("Input.dispatchKeyEvent", params, nil)
		delete(params, "text")
		params["type"] = "keyUp"
		p.do("Input.dispatchKeyEvent", params, nil)
	}
}

// write replaces the text of a field, as a person does.
func (p *tab) write(selector, text string) {
	p.t.Helper()
	p.until(selector, fmt.Sprintf(`document.querySelector(%s)`, quoted(selector)))
	must(p.t, p.try(fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.focus(); e.select() })()`, quoted(selector)), nil))
	p.do("Input.insertText", map[string]any{"text": text}, nil)
}

// choose chooses an option of a select by its text.
func (p *tab) choose(selector, option string) {
	p.t.Helper()
	must(p.t, p.try(fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.selectedIndex = [...e.options].findIndex(o => o.text === %s); if (e.selectedIndex < 0) throw new Error('no such option'); for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, {bubbles: true})) })()`,
		quoted(selector), quoted(option)), nil))
}

// resize changes the size and the color scheme of the page.
func (p *tab) resize(width, height int, scheme string) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// screenshot returns a picture of the whole page.
func (p *tab) screenshot() []byte {
	p.t.Helper()
	return p.capture(map[string]any{"format": "png", "captureBeyondViewport": true})
}

// part returns a picture of a part of the page, between two heights.
func (p *tab) part(from, to int) []byte {
	p.t.Helper()
	width := eval[int](p, "innerWidth")
	return p.capture(map[string]any{"format": "png", "captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": from, "width": width, "height": to - from, "scale": 1}})
}

func (p *tab) capture(how map[string]any) []byte {
	p.t.Helper()
	var shot struct{ Data string }
	p.do("Page.captureScreenshot", how, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	must(p.t, err)
	return picture
}

// quoted returns a text as JavaScript has it.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}
