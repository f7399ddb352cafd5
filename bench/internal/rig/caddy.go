package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
)

// BuildCaddy compiles cmd/caddy of the repository at root into dir.
func BuildCaddy(root, dir string) (string, error) {
	binary := filepath.Join(dir, "caddy")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/caddy")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building cmd/caddy in %s: %w", root, err)
	}
	return binary, nil
}

// caddyTimeout is how long a Caddy may take to answer, and to end.
const caddyTimeout = 30 * time.Second

// Caddy is a running Caddy with one site.
type Caddy struct {
	URL     string
	Admin   string // of the admin endpoint, with a slash at the end
	process *childprocess.Process
	dir     string
}

// caddyfile has verbs for the ports of the admin endpoint and of a site, and for the lines of the
// site.
const caddyfile = `{
	admin 127.0.0.1:%d
	persist_config off
	auto_https off
}
http://127.0.0.1:%d {
	bind 127.0.0.1
%s
}
`

// StartCaddy runs a Caddy with one site, given as lines of a Caddyfile, and returns when it
// answers.
func StartCaddy(binary, site string) (*Caddy, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	admin, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-caddy-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf(caddyfile, admin, port, site)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer logs.Close()
	cmd := exec.Command(binary, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = logs, logs
	c := &Caddy{URL: "http://127.0.0.1:" + strconv.Itoa(port) + "/", Admin: "http://127.0.0.1:" + strconv.Itoa(admin) + "/", dir: dir}
	if c.process, err = childprocess.Start(cmd); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	err = c.process.Await(caddyTimeout, func(context.Context) error {
		response, err := http.Get(c.URL)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	if err != nil {
		output, _ := os.ReadFile(logs.Name())
		return nil, errors.Join(fmt.Errorf("caddy does not answer: %w\n%s", err, output), c.Close())
	}
	return c, nil
}

// Reload has the process load its config once more, although it is the same.
func (c *Caddy) Reload() error {
	text, err := os.ReadFile(filepath.Join(c.dir, "Caddyfile"))
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, c.Admin+"load", bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	request.Header.Set("Cache-Control", "must-revalidate")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(response.Body)
		return fmt.Errorf("the reload failed with status %d: %s", response.StatusCode, why)
	}
	return nil
}

// Close ends the process.
func (c *Caddy) Close() error { return errors.Join(c.process.End(caddyTimeout), os.RemoveAll(c.dir)) }

// Account reports the decisions that the process has made: its metrics that are not 0, and the end
// of its log.
func (c *Caddy) Account() string {
	var b strings.Builder
	if response, err := http.Get(c.Admin + "metrics"); err == nil {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "caddy_rate_limit_") && !strings.HasSuffix(line, " 0\n") && !strings.Contains(line, "_bucket{") {
				b.WriteString(line)
			}
		}
	}
	log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	b.Write(log[max(0, len(log)-4000):])
	return b.String()
}

// Memory returns the resident memory of the process in bytes.
func (c *Caddy) Memory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.process.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kilobytes * 1024, err
		}
	}
	return 0, errors.New("no VmRSS in /proc")
}
