//go:build deep

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

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed-161337e5/caddyratelimit"
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

// workspace is a directory with two modules that are not this one: the store, copied as if it
// was in another repository, and a Caddy that has it.
type workspace struct {
	*testing.T
	dir string
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	w := &workspace{t, t.TempDir()}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("\nrequire %[1]s v0.0.0\nreplace %[1]s => %[2]s\n", module, root)
	w.addModule("simplestore", root, own)
	w.addModule("caddy", root, own+"require example.com/simplestore v0.0.0\nreplace example.com/simplestore => ../simplestore\n")
	// Without a workspace the packages of this module would be those of a version, which nothing else has compiled.
	version := regexp.MustCompile(`(?m)^go .*$`).Find(w.read(filepath.Join(root, "go.mod")))
	w.write("go.work", fmt.Appendf(nil, "%s\nuse (\n./simplestore\n./caddy\n%q\n)\n", version, root))
	w.write("caddy/main.go", []byte(mainFile))
	for _, file := range []string{"store.go", "limit.go", "optional.go", "module.go", "store_test.go"} {
		text := bytes.ReplaceAll(w.read(file), []byte(module+"/examples/simplestore"), []byte("example.com/simplestore"))
		w.write("simplestore/"+file, text)
	}
	return w
}

// addModule makes a module with the versions of this one, so that nothing has to be downloaded.
func (w *workspace) addModule(name, root, more string) {
	w.Helper()
	mod := bytes.Replace(w.read(filepath.Join(root, "go.mod")), []byte("module "+module), []byte("module example.com/"+name), 1)
	w.write(name+"/go.mod", append(mod, more...))
	w.write(name+"/go.sum", w.read(filepath.Join(root, "go.sum")))
}

func (w *workspace) read(path string) []byte {
	w.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	return text
}

func (w *workspace) write(path string, text []byte) {
	w.Helper()
	path = filepath.Join(w.dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		w.Fatal(err)
	}
}

// run runs the go command in a module.
func (w *workspace) run(name string, args ...string) {
	w.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(w.dir, name)
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(w.dir, "go.work"))
	if output, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestBuiltElsewhere: a Caddy of another repository has the store of a third one.
func TestBuiltElsewhere(t *testing.T) {
	w := newWorkspace(t)
	w.run("simplestore", "vet", ".") // it imports nothing that another repository cannot, nor does its test
	w.run("caddy", "build", "-buildvcs=false", "-ldflags=-w", "-o", "caddy", ".")
	list, err := exec.Command(filepath.Join(w.dir, "caddy", "caddy"), "list-modules").CombinedOutput()
	for _, id := range []string{"http.handlers.rate_limit", "http.rate_limit.stores.simple", "http.rate_limit.stores.redis"} {
		if err != nil || !bytes.Contains(list, []byte(id+"\n")) {
			t.Fatalf("Caddy has no module %s: %v", id, err)
		}
	}
}

// TestCaddyWithTheStore serves requests with the config of the page.
func TestCaddyWithTheStore(t *testing.T) {
	dir, err := os.MkdirTemp("", "rl") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, site := filepath.Join(dir, "s"), blocks(t, "caddyfile")
	if len(site) != 1 {
		t.Fatalf("%s shows %d configs", page, len(site))
	}
	text := "{\n\tadmin off\n\tpersist_config off\n}\n" + strings.Replace(site[0], "{\n", "{\n\tbind unix/"+socket+"\n", 1)
	text = strings.Replace(text, "{client_ip}", "{header.User}", 1) // clients of this socket have no addresses
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
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
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		retryAfter, _ = strconv.Atoi(answer.Header.Get("Retry-After"))
		return answer.StatusCode, retryAfter
	}
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
