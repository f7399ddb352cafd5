//go:build deep

// Package docs_test follows the pages: it runs recipes, commands and examples as readers would.
package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestExampleUnit: systemd takes the unit and finds it hardened.
func TestExampleUnit(t *testing.T) {
	t.Parallel()
	harness.NeedProgram(t, "systemd-analyze", "REQUIRE_SYSTEMD")
	text, err := os.ReadFile("../../examples/systemd/caddy.service")
	if err != nil {
		t.Fatal(err)
	}
	dir := redistest.ShortDir(t)
	unit := filepath.Join(dir, "caddy.service")
	// Here is neither that binary nor the manual's server.
	text = []byte(strings.ReplaceAll(string(text), "/usr/local/bin/caddy", "/bin/true"))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(output), "caddy.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
	output, err = exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: an exposure above 2.0: %v\n%s", err, output)
	}
}

// TestExampleCompose runs as processes what examples/compose runs in containers: two instances, Redis and
// Prometheus with their configs. They limit together, and Prometheus takes the alerts and answers every
// query of the dashboard.
func TestExampleCompose(t *testing.T) {
	t.Parallel()
	harness.NeedProgram(t, "prometheus", "REQUIRE_PROMTOOL")
	const dir = "../../examples/compose/"
	file := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t)) }
	home := redistest.ShortDir(t)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	redis, one, two, prometheus := address(), address(), address(), address()
	_, redisPort, _ := strings.Cut(redis, ":")
	script := regexp.MustCompile(`(?s)- \|\n(.*?)\n  \w`).FindStringSubmatch(file("compose.yaml"))
	conf := strings.NewReplacer("bind * -::*", "bind 127.0.0.1", "port 6379", "port "+redisPort).Replace(file("redis.conf"))
	run := strings.NewReplacer("$$", "$", "/etc/redis.conf", write("redis.conf", conf), "/tmp/redis.conf", filepath.Join(home, "made.conf")).Replace(script[1])
	start(t, "REDIS_PASSWORD=secret", "sh", "-c", run)
	var caddys []*harness.Server
	for _, metrics := range []string{one, two} {
		config := strings.NewReplacer("{\n\trate_limit {", "{\n\tadmin unix/{$ADMIN}\n\tpersist_config off\n\trate_limit {",
			":8080 {", "http:// {\n\tbind fd/3", ":2020 {", "http://"+metrics+" {\n\tbind 127.0.0.1", "10/10s", "10/1h", "username limiter", "username limiter\n\t\t\ttimeout 10s").Replace(file("Caddyfile"))
		caddys = append(caddys, harness.StartSites(t, harness.CommandBinary(t), 1, config, "REDIS_ADDRESS="+redis, "REDIS_PASSWORD=secret"))
	}
	scrape := strings.NewReplacer("/etc/prometheus/alerts.yml", "alerts.yml", `"caddy1:2020", "caddy2:2020"`, fmt.Sprintf("%q, %q", one, two), "15s", "200ms").Replace(file("prometheus.yml"))
	alerts, err := os.ReadFile("../../examples/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	write("alerts.yml", string(alerts))
	start(t, "", "prometheus", "--config.file="+write("prometheus.yml", scrape), "--storage.tsdb.path="+filepath.Join(home, "data"), "--web.listen-address="+prometheus)

	client := harness.NewClient(t, "")
	query := func(expr string) (results []json.RawMessage, problem string) {
		a, err := harness.Send(client, "http://"+prometheus+"/api/v1/query?query="+url.QueryEscape(expr))
		if err != nil || a.Status != http.StatusOK {
			return nil, fmt.Sprint(err, a.Status, a.Body)
		}
		var answer struct {
			Data struct{ Result []json.RawMessage }
		}
		if err := json.Unmarshal([]byte(a.Body), &answer); err != nil {
			return nil, err.Error()
		}
		return answer.Data.Result, ""
	}
	seen := func(what, expr string, n int) {
		t.Helper()
		patient.Until(t, what, func() bool {
			results, _ := query(expr)
			return len(results) == n
		})
	}
	seen("Prometheus to see that Redis answers both instances", `caddy_rate_limit_store_up == 1`, 2)
	// Alone, each instance would admit five.
	if a, b := caddys[0].Admitted(client, 12, "/"), caddys[1].Admitted(client, 3, "/"); a != 10 || b != 0 {
		t.Errorf("the instances admitted %d and %d requests, want 10 and 0", a, b)
	}
	seen("Prometheus to see the refusals of both instances", `rate(caddy_rate_limit_declined_requests_total{zone="clients"}[1m]) > 0`, 2)
	for _, expr := range dashboardQueries(t) {
		results, problem := query(expr)
		if problem != "" {
			t.Errorf("%s: %s", expr, problem)
		}
		// This config has no results for these.
		if len(results) == 0 && !regexp.MustCompile(`_(adaptive|response_cost|concurrency|lent|keys_total|store_lent)`).MatchString(expr) {
			t.Errorf("%s: no result", expr)
		}
	}
	if rules, err := harness.Send(client, "http://"+prometheus+"/api/v1/rules"); err != nil || strings.Count(rules.Body, `"type":"alerting"`) < 5 {
		t.Errorf("Prometheus has not loaded the alerts: %v %s", err, rules.Body)
	}
}

// dashboardQueries returns what the dashboard asks, for all zones and instances.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$zone", ".*", "$instance", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, variables.Replace(target.Expr))
		}
	}
	return queries
}

// start runs a program until the test ends.
func start(t *testing.T, variable, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), variable)
	process, err := childprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Errorf("killing %s: %v", name, err)
		}
	})
}

// TestGettingStarted: a newcomer follows the page word for word in an empty folder: saves its configs, types its
// commands, is refused, sees why, and is let through. The log suggests the number that the page goes on with.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	sample, err := filepath.Abs("../../testdata/replay/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	// This test's Caddy is what is built, on ports of its own, and the sample is not downloaded. The steps must be
	// done within a window, however slow this machine is.
	dir, site, admin := redistest.ShortDir(t), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t)), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t))
	var script strings.Builder
	script.WriteString(`set -eu
go() { test "$1" = run && ln -s "$CADDY" caddy; }
curl() { if [ "$1" = -sSLO ]; then cp "$SAMPLE" .; else command curl "$@"; fi; }
`)
	started := false
	for _, block := range regexp.MustCompile("(?ms)^```(caddyfile|sh)\n(.*?)^```$").FindAllStringSubmatch(harness.ReadPage(t, "../../docs/getting-started.md"), -1) {
		if block[1] == "sh" {
			started = started || strings.Contains(block[2], "caddy start")
			script.WriteString(strings.ReplaceAll(block[2], "127.0.0.1:8080", site))
			continue
		}
		config := strings.Replace(block[2], ":8080", "http://"+site, 1)
		if strings.Contains(script.String(), "replay") {
			config = strings.Replace(config, "/1m", "/1h", 1)
		} else {
			config = block[2] // the sample is of another host
		}
		script.WriteString("cat > Caddyfile <<'END'\n" + config + "END\n")
	}
	if !started {
		t.Fatal("the page starts no Caddy")
	}
	cmd := exec.Command("bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CADDY="+harness.CommandBinary(t), "SAMPLE="+sample, "CADDY_ADMIN="+admin, "HOME="+dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	rest := string(output)
	for _, want := range []string{
		"80/1m               120                1  suggested",             // the log has chosen
		strings.Repeat("200 ", 100), "clients  100       20 (dry run)  1", // a dry run
		"429 Too Many Requests", "Retry-After: ", // enforced
		"Zone clients is refusing this key: 80 of 80 used.", "rate-limit reset clients 127.0.0.1", // seen
		"200 OK", "Hello, 127.0.0.1!", // let through
		"0 fail and 1 warn.", "all 102 recent requests have the same key",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q after the others in\n%s", want, output)
		}
		rest = after
	}
}

// TestTwoInstances: docs/redis.md has two instances on one machine, word for word but for the ports.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(harness.ReadPage(t, "../../docs/redis.md"), "Two instances on one machine")
	section, _, _ = strings.Cut(section, "## Rights")
	blocks := regexp.MustCompile("(?ms)^```(caddyfile|sh)\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	port := func() string { return strconv.Itoa(redistest.FreePort(t)) }
	redis := port()
	ports := strings.NewReplacer("2021", port(), "2022", port(), "8081", port(), "8082", port(),
		"redis-server", "redis-server --port "+redis, "store redis", "store redis {\naddress 127.0.0.1:"+redis+"\n}")
	script := "set -eu\ntrap 'kill $(jobs -p)' EXIT\nln -s \"$CADDY\" caddy\ncat > Caddyfile <<'END'\n" + blocks[0][2] + "END\n" + blocks[1][2]
	cmd := exec.Command("bash", "-c", ports.Replace(script))
	cmd.Dir = redistest.ShortDir(t)
	cmd.Env = append(os.Environ(), "CADDY="+harness.CommandBinary(t), "HOME="+cmd.Dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if want := strings.Repeat("200 ", 5) + "429 "; !strings.Contains(string(output), want) {
		t.Errorf("no %q in\n%s", want, output)
	}
}
