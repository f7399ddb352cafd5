package browser

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// buildCaddy builds cmd/caddy once. CADDY names a binary that is there already.
var buildCaddy = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("CADDY"); path != "" {
		return filepath.Abs(path)
	}
	return childprocess.BuildCaddy("../..")
})

// caddy is a running Caddy.
type caddy struct {
	t       *testing.T
	dir     string
	admin   string // host:port
	site    string // host:port
	process *childprocess.Process
}

// startCaddy runs a Caddy with the options and the site of a Caddyfile until the test ends.
func startCaddy(t *testing.T, options, site string) *caddy {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlp")
	must(t, err)
	c := &caddy{t: t, dir: dir, admin: fmt.Sprint("127.0.0.1:", redistest.FreePort(t))}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c.site = fmt.Sprint("127.0.0.1:", redistest.FreePort(t))
	c.configure(options, site)
	c.start()
	t.Cleanup(func() {
		_ = c.process.Kill()
		if log := c.log(); bytes.Contains(log, []byte("panic")) || t.Failed() {
			t.Logf("end of Caddy's log:\n%s", log[max(0, len(log)-3000):])
		}
	})
	return c
}

// configure writes the config, for a start or a reload.
func (c *caddy) configure(options, site string) string {
	c.t.Helper()
	text := fmt.Sprintf("{\n\tadmin %s\n\tpersist_config off\n\tauto_https off\n%s\n}\nhttp://%s {\n\tbind 127.0.0.1\n%s\n}\n", c.admin, options, c.site, site)
	must(c.t, os.WriteFile(filepath.Join(c.dir, "Caddyfile"), []byte(text), 0o600))
	return text
}

func (c *caddy) start() {
	c.t.Helper()
	binary, err := buildCaddy()
	must(c.t, err)
	output, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(c.t, err)
	defer output.Close()
	cmd := exec.Command(binary, "run", "--config", filepath.Join(c.dir, "Caddyfile"), "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "XDG_DATA_HOME="+c.dir, "XDG_CONFIG_HOME="+c.dir)
	cmd.Stdout, cmd.Stderr = output, output
	c.process, err = childprocess.Start(cmd)
	must(c.t, err)
	patient.Until(c.t, "Caddy to be ready", func() bool {
		if c.process.Ended() {
			c.t.Fatalf("Caddy ended: %v\n%s", c.process.Err(), c.log())
		}
		response, err := http.Get("http://" + c.site + "/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return true
	})
}

func (c *caddy) log() []byte {
	text, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	return text
}

// reloadWith loads another site, and options of the admin endpoint.
func (c *caddy) reloadWith(site, admin string) {
	c.t.Helper()
	address := c.admin
	c.admin += " {\n" + admin + "\n}"
	text := c.configure("", site)
	c.admin = address
	c.load(text)
}

// reload loads another config.
func (c *caddy) reload(options, site string) {
	c.t.Helper()
	c.load(c.configure(options, site))
}

func (c *caddy) load(text string) {
	c.t.Helper()
	request, err := http.NewRequest("POST", "http://"+c.admin+"/load", strings.NewReader(text))
	must(c.t, err)
	request.Header.Set("Content-Type", "text/caddyfile")
	response, err := http.DefaultClient.Do(request)
	must(c.t, err)
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		c.t.Fatalf("reload: %s %s", response.Status, text)
	}
}

// get sends a request with headers, each as "Name: value", and returns the status.
func (c *caddy) get(path string, fields ...string) int {
	c.t.Helper()
	request, err := http.NewRequest("GET", "http://"+c.site+path, nil)
	must(c.t, err)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		request.Header[name] = []string{value}
	}
	response, err := http.DefaultClient.Do(request)
	must(c.t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// page runs the command that serves the page, and returns the address that it prints.
func (c *caddy) page() string {
	c.t.Helper()
	binary, err := buildCaddy()
	must(c.t, err)
	cmd := exec.Command(binary, "rate-limit", "page", "--address", c.admin)
	output, err := cmd.StdoutPipe()
	must(c.t, err)
	cmd.Stderr = os.Stderr
	process, err := childprocess.Start(cmd)
	must(c.t, err)
	c.t.Cleanup(func() { _ = process.Kill() })
	address, err := bufio.NewReader(output).ReadString('\n')
	must(c.t, err)
	return strings.TrimSpace(address)
}
