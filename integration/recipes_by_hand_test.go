package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestRecipesByHand runs the commands below each config of docs/recipes.md, which say what they
// print. One Caddy has all recipes, each on a socket of its own.
func TestRecipesByHand(t *testing.T) {
	t.Parallel()
	page := readPage(t, "../docs/recipes.md")
	found := regexp.MustCompile("(?ms)^## ([^\n]*)\n(?:[^#`].*?)?^```caddyfile\n(.*?)^```$.*?^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if n := strings.Count(page, "\n## "); n != len(found) {
		t.Errorf("%d recipes, but only %d with commands", n, len(found))
	}
	head := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(page)
	b := startBackend(t, verifying(upstream))
	s := startSites(t, binary(t), len(found), caddyfile("log {\nlevel WARN\n}", "respond ok"))
	served := make(object)
	for i, recipe := range found {
		adapted := example{name: recipe[1], config: recipe[2]}.adapt(t, s)
		for name, value := range servers(adapted) {
			server := value.(object)
			server["listen"] = []any{fmt.Sprintf("fd/%d", 3+i)}
			server["automatic_https"], server["protocols"] = object{"disable": true}, []any{"h1"}
			delete(server, "tls_connection_policies")
			redial(server, b.address)
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
	if err := s.configure("POST", "/load", "application/json", string(text)); err != nil {
		t.Fatal(err)
	}
	for i, address := range append([]string{s.address}, s.more...) {
		byHand(t, found[i][1], address, head[1], found[i][3])
	}
}

// byHand runs commands. Behind each of them is what it prints, as a comment.
func byHand(t *testing.T, recipe, address, before, commands string) {
	t.Helper()
	commands = strings.ReplaceAll(commands, "https://", "http://")
	script := "curl() { command curl --connect-to ::" + address + " \"$@\"; }\n" + before
	var want []string
	for line := range strings.Lines(commands) {
		if printed, ok := strings.CutPrefix(line, "# "); ok {
			want = append(want, strings.TrimSpace(printed))
		} else {
			script += strings.TrimSuffix(line, "\n") + "; echo\n"
		}
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(tokens(), "PATH="+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", recipe, err, output)
	}
	var got []string
	for line := range strings.Lines(string(output)) {
		got = append(got, strings.TrimSpace(line))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: the commands print\n%s\nwant\n%s", recipe, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
