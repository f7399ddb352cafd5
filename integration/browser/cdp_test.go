package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// chromium is a running browser. It is spoken to in Chrome's DevTools protocol, over pipes.
type chromium struct {
	out io.Writer

	mu      sync.Mutex
	last    int
	pending map[int]chan reply
	tabs    map[string]func(method string, params json.RawMessage) // by session
	gone    error                                                  // why it no longer answers
}

// reply is the answer to a command.
type reply struct {
	result json.RawMessage
	err    error
}

// path returns the path of the browser. Without one the test is skipped, or fails with
// REQUIRE_CHROMIUM=1.
func path(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	const howToGet = "no chromium on PATH: apt-get install chromium, or: make chromium"
	if os.Getenv("REQUIRE_CHROMIUM") == "1" {
		t.Fatal(howToGet)
	}
	fmt.Fprintf(os.Stderr, "\nWARNING: the page is NOT TESTED: %s\n\n", howToGet)
	t.Skip("SKIPPED: " + howToGet)
	return ""
}

// startChromium runs a browser until the test ends.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlch")
	must(t, err)
	commands, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions", "--mute-audio", "--hide-scrollbars",
		"--disable-renderer-backgrounding", "--disable-background-timer-throttling", "--lang=en-US", "--user-data-dir="+filepath.Join(dir, "profile"), "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC")
	cmd.ExtraFiles = []*os.File{commands, answers}
	process, err := childprocess.Start(cmd)
	if err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	commands.Close()
	answers.Close()
	c := &chromium{out: toBrowser, pending: make(map[int]chan reply), tabs: make(map[string]func(string, json.RawMessage))}
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(fromBrowser)
	}()
	t.Cleanup(func() {
		_ = c.call("", "Browser.close", nil, nil)
		_ = process.End(10 * time.Second)
		toBrowser.Close()
		<-read
		fromBrowser.Close()
		// Processes of the browser may live a little longer than it.
		patient.Until(t, "an empty directory", func() bool { return os.RemoveAll(dir) == nil })
	})
	return c
}

// read takes answers and events until the browser ends.
func (c *chromium) read(from io.Reader) {
	messages := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := messages.ReadBytes(0)
		if err != nil {
			c.end(fmt.Errorf("Chromium has ended: %w", err))
			return
		}
		var m struct {
			ID        int             `json:"id"`
			Method    string          `json:"method"`
			Params    json.RawMessage `json:"params"`
			Result    json.RawMessage `json:"result"`
			SessionID string          `json:"sessionId"`
			Error     *struct {
				Message string `json:"message"`
				Data    string `json:"data"`
			} `json:"error"`
		}
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			c.end(err)
			return
		}
		c.mu.Lock()
		answer, event := c.pending[m.ID], c.tabs[m.SessionID]
		delete(c.pending, m.ID)
		c.mu.Unlock()
		switch {
		case answer != nil && m.Error != nil:
			answer <- reply{err: fmt.Errorf("%s %s", m.Error.Message, m.Error.Data)}
		case answer != nil:
			answer <- reply{result: m.Result}
		case event != nil:
			event(m.Method, m.Params)
		}
	}
}

// end fails all that still waits.
func (c *chromium) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = err
	for id, answer := range c.pending {
		delete(c.pending, id)
		answer <- reply{err: err}
	}
}

// call has the browser carry out a command, in a session unless that is empty.
func (c *chromium) call(session, method string, params, result any) error {
	answer := make(chan reply, 1)
	c.mu.Lock()
	if c.gone != nil {
		defer c.mu.Unlock()
		return c.gone
	}
	c.last++
	c.pending[c.last] = answer
	message := map[string]any{"id": c.last, "method": method, "params": params}
	if params == nil {
		message["params"] = struct{}{}
	}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = c.out.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	r := <-answer
	if r.err != nil {
		return fmt.Errorf("%s: %w", method, r.err)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(r.result, result)
}
