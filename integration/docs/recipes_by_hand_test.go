//go:build deep

package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestRecipesByHand runs the commands below each recipe, which say what they print. One Caddy has all
// recipes, each on a socket of its own.
func TestRecipesByHand(t *testing.T) {
	t.Parallel()
	found, functions := recipes(t)
	b := harness.StartBackend(t, verifying)
	s := harness.StartSites(t, harness.Binary(t), len(found), harness.Caddyfile("log {\nlevel WARN\n}", "respond ok"))
	served := make(object)
	for i, recipe := range found {
		for name, value := range servers(t, s, recipe.Config) {
			server := value.(object)
			server["listen"] = []any{fmt.Sprintf("fd/%d", 3+i)}
			server["automatic_https"], server["protocols"] = object{"disable": true}, []any{"h1"}
			delete(server, "tls_connection_policies")
			redial(server, b.Address)
			served[fmt.Sprint("r", i, name)] = server
		}
	}
	text, err := json.Marshal(object{
		"admin":   object{"listen": "unix/{env.ADMIN}", "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"level": "WARN"}}},
		"apps":    object{"http": object{"servers": served, "grace_period": "1s"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure("POST", "/load", "application/json", string(text)); err != nil {
		t.Fatal(err)
	}
	for i, address := range append([]string{s.Address}, s.More...) {
		byHand(t, s, b, found[i], address, functions)
	}
}

// verifying is an upstream, and the service that forward_auth asks about a token. It knows the tokens of two clients.
func verifying(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/verify" {
		harness.AnswerAsAsked(b, w, r)
		return
	}
	subject := map[string]string{"Bearer a.b.c": "alice", "Bearer d.e.f": "bob"}[r.Header.Get("Authorization")]
	if subject == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("X-Token-Subject", subject)
}

type object = map[string]any

// servers returns the HTTP servers of a Caddyfile, in JSON.
func servers(t *testing.T, s *harness.Server, config string) object {
	t.Helper()
	text, err := s.Admin("POST", "/adapt", "text/caddyfile", config)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result struct {
			Apps struct{ HTTP struct{ Servers object } }
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Result.Apps.HTTP.Servers
}

// redial replaces all upstreams by one that speaks HTTP/1.1.
func redial(value any, upstream string) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			redial(e, upstream)
		}
	case object:
		if v["upstreams"] != nil {
			delete(v, "transport")
		}
		for name, e := range v {
			if name == "dial" {
				v[name] = upstream
			}
			redial(e, upstream)
		}
	}
}

// byHand runs the commands of a recipe. Behind each of them is what it prints, as a comment. Requests that
// are sent at once stay with the upstream until as many have been refused as the page says.
func byHand(t *testing.T, s *harness.Server, b *harness.Backend, recipe recipe, address, before string) {
	t.Helper()
	commands := strings.ReplaceAll(recipe.Commands, "https://", "http://")
	script := `curl() { case "$*" in *"-Z "*) set -- -H "X-Gate: $GATE" "$@"; esac; command curl --connect-to ::` + address + ` "$@"; }` + "\n" + before
	var want []string
	for line := range strings.Lines(commands) {
		if printed, ok := strings.CutPrefix(line, "# "); ok {
			want = append(want, strings.TrimSpace(printed))
		} else {
			script += strings.TrimSuffix(line, "\n") + "; echo\n"
		}
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = []string{"ALICE=a.b.c", "BOB=d.e.f", "FORGED=a.b.f", "PATH=" + os.Getenv("PATH"), "GATE=" + recipe.Heading}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	refusedBefore := refused(s)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(commands, "at_once ") {
		refusals := strings.Count(strings.Join(want, " "), "429") + strings.Count(strings.Join(want, " "), "503")
		patient.Until(t, "the refusals of "+recipe.Heading, func() bool { return refused(s)-refusedBefore >= uint64(refusals) })
		b.Open(recipe.Heading)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", recipe.Heading, err, output.String())
	}
	var got []string
	for line := range strings.Lines(output.String()) {
		got = append(got, strings.TrimSpace(line))
	}
	if strings.Contains(commands, "at_once ") { // the answers may come in any order
		for i, words := range slices.Concat(got, want) {
			all := strings.Fields(words)
			slices.Sort(all)
			if i < len(got) {
				got[i] = strings.Join(all, " ")
			} else {
				want[i-len(got)] = strings.Join(all, " ")
			}
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: the commands print\n%s\nwant\n%s", recipe.Heading, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// refused returns how many requests all zones have refused.
func refused(s *harness.Server) (sum uint64) {
	var zones []struct {
		Totals map[string]uint64 `json:"totals"`
	}
	s.Ask("/rate_limit/zones", &zones)
	for _, zone := range zones {
		sum += zone.Totals["limited"]
	}
	return sum
}

// recipe is a recipe of docs/recipes.md, or one of examples/recipes with commands of its own.
type recipe struct{ Heading, Config, Commands string }

// recipes returns all recipes with commands, and the functions that the commands use.
func recipes(t *testing.T) (found []recipe, functions string) {
	t.Helper()
	page := harness.ReadPage(t, harness.Root+"/docs/recipes.md")
	functions = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(page)[1]
	one := regexp.MustCompile("(?ms)^## ([^\n]*)\n(?:[^#`].*?)?^```caddyfile\n(.*?)^```$.*?^```sh\n(.*?)^```$")
	for _, match := range one.FindAllStringSubmatch(page, -1) {
		found = append(found, recipe{match[1], match[2], match[3]})
	}
	if n := strings.Count(page, "\n## "); n != len(found) {
		t.Errorf("%d recipes, but %d with commands", n, len(found))
	}
	files, err := filepath.Glob(harness.Root + "/examples/recipes/*/try.sh")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		_, commands, _ := strings.Cut(harness.ReadPage(t, file), "\n") // behind the comment about the functions
		dir := filepath.Dir(file)
		found = append(found, recipe{filepath.Base(dir), harness.ReadPage(t, dir+"/Caddyfile"), commands})
	}
	return found, functions
}
