package simplestore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

const module = "github.com/seed-161337e5/caddyratelimit"

// mainFile is what xcaddy writes: a Caddy with the rate limiter and a store from another module.
const mainFile = `package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "` + module + `"
	_ "example.com/simplestore"
)

func main() { caddycmd.Main() }
`

// build builds that Caddy. The store is copied to a module of its own first, so it can import
// nothing that a store in another repository cannot.
func build(t *testing.T) (binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a Caddy")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(path string, text []byte) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// With the versions of the main module, nothing has to be downloaded.
	ours := bytes.Replace(mod, []byte("module "+module), []byte("module example.com/caddy"), 1)
	write("caddy/go.mod", fmt.Appendf(ours, "\nrequire %[1]s v0.0.0\nreplace %[1]s => %[2]s\nrequire example.com/simplestore v0.0.0\nreplace example.com/simplestore => ../store\n",
		module, root))
	write("caddy/go.sum", sums)
	write("caddy/main.go", []byte(mainFile))
	theirs := bytes.Replace(mod, []byte("module "+module), []byte("module example.com/simplestore"), 1)
	write("store/go.mod", fmt.Appendf(theirs, "\nrequire %s v0.0.0\n", module))
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Join("store", file), text)
	}
	binary = filepath.Join(dir, "caddy", "caddy")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-mod=mod", "-o", binary, ".")
	cmd.Dir = filepath.Join(dir, "caddy")
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}

// page says how to write a store.
const page = "../../docs/stores.md"

// blocks are the blocks of the page in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	return found
}

// TestCodeInTheDocs: what the page shows in Go stands in this package.
func TestCodeInTheDocs(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	shown := blocks(t, "go")
	if len(shown) < 5 {
		t.Errorf("%s shows %d pieces of code", page, len(shown))
	}
	for _, block := range shown {
		if !strings.Contains(code.String(), block) {
			t.Errorf("%s shows what this package does not have:\n%s", page, block)
		}
	}
}

// TestCaddyWithTheStore serves requests with the config of the page.
func TestCaddyWithTheStore(t *testing.T) {
	binary := build(t)
	list, err := exec.Command(binary, "list-modules").CombinedOutput()
	for _, id := range []string{"http.handlers.rate_limit", "http.rate_limit.stores.simple", "http.rate_limit.stores.redis"} {
		if err != nil || !bytes.Contains(list, []byte(id+"\n")) {
			t.Fatalf("Caddy has no module %s: %v", id, err)
		}
	}
	dir := t.TempDir()
	config, socket := filepath.Join(dir, "Caddyfile"), filepath.Join(dir, "s")
	if len(socket) >= 100 {
		t.Skipf("the path of a socket is too long: %s", socket)
	}
	site := blocks(t, "caddyfile")
	if len(site) != 1 {
		t.Fatalf("%s shows %d configs", page, len(site))
	}
	text := "{\n\tadmin off\n\tpersist_config off\n}\n" + strings.Replace(site[0], "{\n", "{\n\tbind unix/"+socket+"\n", 1)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, "run", "--config", config)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	caddy, err := childprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s", &log)
		}
	})
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	ask := func(user string) (status int, retryAfter int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", user)
		answer, err := client.Do(r)
		if err != nil {
			return 0, 0
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		retryAfter, _ = strconv.Atoi(answer.Header.Get("Retry-After"))
		return answer.StatusCode, retryAfter
	}
	patient.Until(t, "Caddy to be ready", func() bool {
		status, _ := ask("first")
		return status == http.StatusOK || caddy.Ended()
	})
	for i, want := range []int{200, 200, 429, 429} {
		if got, _ := ask("a"); got != want {
			t.Errorf("request %d: %d, want %d", i+1, got, want)
		}
	}
	if got, retry := ask("a"); got != 429 || retry <= 60 {
		t.Errorf("banned: %d, Retry-After %d", got, retry)
	}
	if got, _ := ask("b"); got != 200 {
		t.Errorf("another user: %d, want 200", got)
	}
}
