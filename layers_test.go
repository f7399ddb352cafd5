package caddyratelimit_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-161337e5/caddyratelimit"

// layer is how large a package may be, and what it may import.
type layer struct {
	lines int    // of code: see TestBudgets
	kB    int    // of code, 1,000 bytes each
	caddy bool   // Caddy, and with it all that Caddy imports
	own   string // packages of this module
}

// layers has every package of the module, from the bottom up, and the packages that it may import.
// These must be above it in this table, so no package imports upward.
var layers = []struct {
	name string
	layer
}{
	{"internal/advice", layer{lines: 66, kB: 5}},
	{"internal/suggest", layer{lines: 50, kB: 2}},
	{"internal/say", layer{lines: 70, kB: 3}},
	{"internal/duration", layer{lines: 55, kB: 2}},
	{"internal/msgpack", layer{lines: 50, kB: 2}},
	{"algorithms", layer{lines: 1200, kB: 36, own: "internal/duration internal/suggest"}},
	{"store", layer{lines: 999, kB: 29, own: "algorithms internal/duration internal/msgpack"}},
	{"lua", layer{lines: 1150, kB: 44, own: "algorithms store"}},
	{"memorystore", layer{lines: 835, kB: 26, own: "algorithms internal/advice store"}},
	{"internal/throttle", layer{lines: 11, kB: 2}},
	{"redisstore/internal/keys", layer{lines: 50, kB: 2, own: "store"}},
	{"redisstore/internal/layer", layer{lines: 100, kB: 3, own: "algorithms store"}},
	{"redisstore/internal/protocol", layer{lines: 850, kB: 24, own: "algorithms internal/msgpack lua store"}},
	{"redisstore/internal/outbox", layer{lines: 180, kB: 5, own: "algorithms store"}},
	{"redisstore/internal/node", layer{lines: 1707, kB: 47, own: "internal/advice redisstore/internal/protocol store"}},
	{"redisstore/internal/topology", layer{lines: 660, kB: 18, own: "internal/advice redisstore/internal/node store"}},
	{"redisstore/internal/link", layer{lines: 450, kB: 13, own: "algorithms internal/throttle redisstore/internal/keys redisstore/internal/layer " +
		"redisstore/internal/node redisstore/internal/outbox redisstore/internal/protocol store"}},
	{"redisstore/internal/multislot", layer{lines: 190, kB: 6, own: "algorithms redisstore/internal/layer redisstore/internal/protocol store"}},
	{"redisstore/internal/refusals", layer{lines: 360, kB: 11, own: "algorithms redisstore/internal/layer redisstore/internal/node store"}},
	{"redisstore/internal/prepaid", layer{lines: 510, kB: 15, own: "algorithms redisstore/internal/layer store"}},
	{"redisstore", layer{lines: 1378, kB: 44, own: "algorithms internal/advice internal/throttle lua redisstore/internal/keys redisstore/internal/layer " +
		"redisstore/internal/link redisstore/internal/multislot redisstore/internal/node redisstore/internal/prepaid redisstore/internal/protocol " +
		"redisstore/internal/refusals redisstore/internal/topology store"}},
	{"internal/topk", layer{lines: 295, kB: 8}},
	{"internal/usage", layer{lines: 590, kB: 16}},
	{"internal/outcome", layer{lines: 60, kB: 2}},
	{"internal/adminapi", layer{lines: 454, kB: 14, own: "algorithms internal/advice internal/outcome"}},
	{"internal/web", layer{lines: 200, kB: 10}},

	{"internal/lab/replay/logs", layer{lines: 1205, kB: 38, own: "internal/say"}},
	{"internal/lab/replay", layer{lines: 412, kB: 14, own: "internal/say internal/web"}},
	{"internal/hangup", layer{lines: 105, kB: 3, caddy: true}},
	{"internal/events", layer{lines: 60, kB: 2, caddy: true}},
	{"internal/clientip", layer{lines: 145, kB: 6, caddy: true, own: "internal/advice"}},
	{"internal/logging", layer{lines: 14, kB: 2, caddy: true}},
	{"internal/option", layer{lines: 601, kB: 19, caddy: true, own: "internal/suggest"}},
	{"internal/placeholder", layer{lines: 221, kB: 8, caddy: true, own: "internal/clientip internal/suggest"}},
	{"internal/request/key", layer{lines: 698, kB: 21, caddy: true, own: "internal/placeholder"}},
	{"internal/stats", layer{lines: 244, kB: 7, own: "internal/outcome internal/topk"}},
	{"internal/feed", layer{lines: 97, kB: 3, own: "algorithms internal/adminapi internal/clientip internal/outcome internal/topk"}},
	{"internal/heap", layer{lines: 32, kB: 1}},
	{"internal/clock", layer{lines: 88, kB: 3, own: "internal/heap"}},
	{"internal/gate", layer{lines: 609, kB: 17, own: "internal/adminapi internal/heap"}},
	{"internal/turns", layer{lines: 233, kB: 6, own: "internal/clock store"}},
	{"internal/writers", layer{lines: 107, kB: 4, caddy: true}},
	{"adaptive", layer{lines: 391, kB: 14, caddy: true, own: "internal/adminapi internal/clock internal/gate internal/hangup internal/option " +
		"internal/placeholder internal/request/key internal/stats internal/writers"}},
	{"internal/pool", layer{lines: 360, kB: 11, caddy: true, own: "algorithms internal/advice internal/clock internal/logging internal/stats " +
		"internal/throttle internal/topk internal/turns memorystore store"}},
	{"internal/operate/fleet", layer{lines: 224, kB: 7, own: "internal/adminapi store"}},
	{"config", layer{lines: 850, kB: 31, caddy: true, own: "algorithms internal/duration internal/option internal/placeholder internal/suggest " +
		"internal/usage store"}},
	{"internal/request/body", layer{lines: 215, kB: 6, caddy: true}},
	{"internal/request/zone", layer{lines: 929, kB: 30, caddy: true, own: "algorithms config internal/clientip internal/duration internal/outcome " +
		"internal/placeholder internal/request/body internal/request/key internal/stats internal/throttle internal/usage store"}},
	{"backend", layer{lines: 159, kB: 6, caddy: true, own: "internal/logging internal/option memorystore redisstore store"}},
	{"internal/operate/doctor", layer{lines: 516, kB: 24, own: "internal/adminapi internal/advice internal/duration internal/outcome internal/stats " +
		"internal/topk store"}},
	{"internal/operate/page", layer{lines: 1535, kB: 80, own: "internal/web"}},
	{"internal/request/routes", layer{lines: 107, kB: 3, caddy: true}},
	{"internal/request/late", layer{lines: 405, kB: 13, caddy: true, own: "algorithms config internal/clock internal/logging internal/pool " +
		"internal/request/body internal/request/zone internal/stats internal/usage internal/writers store"}},
	{"internal/request/limiter", layer{lines: 673, kB: 20, caddy: true, own: "algorithms config internal/clientip internal/clock internal/feed " +
		"internal/hangup internal/outcome internal/placeholder internal/pool internal/request/late internal/request/zone internal/stats internal/throttle " +
		"internal/turns store"}},
	{"internal/lab/walk", layer{lines: 384, kB: 15, caddy: true, own: "internal/adminapi"}},
	{"internal/request/respond", layer{lines: 779, kB: 26, caddy: true, own: "config internal/outcome internal/placeholder internal/request/late " +
		"internal/request/limiter internal/request/routes internal/request/zone internal/writers"}},
	{"internal/lab/trial", layer{lines: 388, kB: 14, caddy: true, own: "algorithms config internal/adminapi internal/clientip internal/clock " +
		"internal/lab/walk internal/outcome internal/placeholder internal/pool internal/request/limiter internal/request/respond internal/request/zone " +
		"memorystore store"}},
	{"internal/lab/offline", layer{lines: 169, kB: 6, caddy: true, own: "internal/lab/trial internal/request/zone"}},
	{"internal/lab/replay/engine", layer{lines: 1598, kB: 52, caddy: true, own: "config internal/adminapi internal/advice internal/clientip " +
		"internal/clock internal/lab/offline internal/lab/replay internal/lab/replay/logs internal/lab/trial internal/lab/walk internal/outcome " +
		"internal/placeholder internal/request/late internal/request/limiter internal/request/zone internal/say internal/stats memorystore"}},
	{"internal/lab/compare", layer{lines: 272, kB: 9, own: "config internal/adminapi internal/duration internal/lab/offline internal/lab/replay " +
		"internal/lab/replay/engine internal/lab/trial internal/request/zone"}},
	{"internal/operate/shell", layer{lines: 90, kB: 3, own: "internal/adminapi"}},
	{"internal/operate/why", layer{lines: 175, kB: 7, own: "internal/adminapi internal/duration internal/operate/shell internal/outcome"}},
	{"internal/operate/peek", layer{lines: 254, kB: 9, caddy: true, own: "algorithms config internal/adminapi internal/duration internal/operate/why " +
		"internal/outcome internal/pool internal/request/key internal/request/zone store"}},
	{"internal/operate/explain", layer{lines: 314, kB: 11, caddy: true, own: "algorithms internal/adminapi internal/clientip internal/clock " +
		"internal/lab/trial internal/lab/walk internal/operate/peek internal/operate/why internal/outcome internal/pool internal/request/limiter " +
		"internal/request/zone store"}},
	{"internal/operate/running", layer{lines: 665, kB: 23, caddy: true, own: "algorithms config internal/adminapi internal/lab/compare " +
		"internal/lab/trial internal/logging internal/operate/fleet internal/operate/peek internal/outcome internal/pool internal/request/zone " +
		"internal/stats internal/topk store"}},
	{"internal/operate/admin", layer{lines: 1395, kB: 48, caddy: true, own: "adaptive config internal/adminapi internal/clientip internal/duration " +
		"internal/feed internal/logging internal/operate/doctor internal/operate/explain internal/operate/fleet internal/operate/page internal/operate/peek " +
		"internal/operate/running internal/operate/why internal/outcome internal/pool internal/request/key internal/request/zone internal/suggest " +
		"internal/topk store"}},
	{"internal/lab/cases", layer{lines: 1099, kB: 36, caddy: true, own: "algorithms config internal/adminapi internal/clock internal/duration " +
		"internal/lab/offline internal/lab/trial internal/lab/walk internal/operate/peek internal/option internal/outcome internal/pool " +
		"internal/request/limiter internal/say internal/suggest store"}},
	{"internal/operate/cli", layer{lines: 2125, kB: 68, caddy: true, own: "internal/adminapi internal/duration internal/lab/cases internal/lab/compare " +
		"internal/lab/offline internal/lab/replay internal/lab/replay/engine internal/operate/explain internal/operate/shell internal/operate/why " +
		"internal/outcome internal/say"}},
	{"internal/request/report", layer{lines: 195, kB: 6, own: "internal/clientip internal/events internal/logging internal/outcome " +
		"internal/request/limiter internal/request/zone"}},
	{".", layer{lines: 773, kB: 30, caddy: true, own: "adaptive algorithms backend config internal/advice internal/clientip internal/events " +
		"internal/hangup internal/lab/trial internal/logging internal/operate/admin internal/operate/cli internal/operate/running internal/option " +
		"internal/placeholder internal/pool internal/request/key internal/request/limiter internal/request/report internal/request/respond " +
		"internal/request/routes internal/request/zone internal/stats memorystore store"}},
	{"cmd/caddy", layer{lines: 7, kB: 2, caddy: true, own: "."}},

	// What only tests and documentation use.
	{"internal/testing/deep", layer{lines: 53, kB: 2}},
	{"internal/testing/patient", layer{lines: 50, kB: 2}},
	{"internal/testing/simredis", layer{lines: 1101, kB: 30}},
	{"internal/testing/faultproxy", layer{lines: 150, kB: 5, own: "internal/testing/simredis"}},
	{"internal/testing/golden", layer{lines: 83, kB: 4}},

	{"internal/testing/childprocess", layer{lines: 180, kB: 5}},
	{"internal/testing/mutants", layer{lines: 162, kB: 6}},
	{"internal/testing/platforms", layer{lines: 66, kB: 2}},
	{"internal/testing/redistest", layer{lines: 820, kB: 24, own: "internal/testing/childprocess internal/testing/patient"}},
	{"internal/testing/caddytest", layer{lines: 695, kB: 23, caddy: true, own: "algorithms internal/pool internal/testing/golden " +
		"internal/testing/redistest memorystore store"}},
	{"internal/testing/model", layer{lines: 543, kB: 17, own: "algorithms"}},
	{"internal/testing/model/vectors", layer{lines: 217, kB: 7, own: "algorithms"}},
	{"internal/testing/linear", layer{lines: 727, kB: 21, own: "algorithms internal/testing/patient store"}},
	{"internal/testing/reference", layer{lines: 293, kB: 10, caddy: true, own: "internal/option"}},
	{"internal/testing/world", layer{lines: 2958, kB: 96, caddy: true, own: "algorithms config internal/heap internal/outcome internal/pool " +
		"internal/request/limiter internal/request/zone internal/testing/model internal/testing/simredis redisstore store"}},
	{"redisstore/internal/layer/layertest", layer{lines: 50, kB: 2, own: "algorithms memorystore redisstore/internal/layer store"}},
	{"store/storetest", layer{lines: 972, kB: 37, own: "algorithms internal/testing/linear internal/testing/patient store"}},

	// A store as other people write them: it imports what a module in another repository can.
	{"examples/simplestore", layer{lines: 300, kB: 9, caddy: true, own: "algorithms store"}},
	{"examples/apiclient", layer{lines: 100, kB: 3}},
	{"docs", layer{}},
	{"integration/internal/harness", layer{lines: 947, kB: 27, own: "internal/testing/childprocess internal/testing/deep internal/testing/patient " +
		"internal/testing/redistest"}},
	{"integration", layer{}},
	{"integration/cli", layer{}},
	{"integration/costs", layer{}},
	{"integration/docs", layer{}},
	{"integration/faults", layer{}},
	{"integration/floods", layer{}},
	{"integration/headers", layer{}},
	{"integration/keys", layer{}},
	{"integration/limits", layer{}},
	{"integration/observe", layer{}},
	{"integration/queues", layer{}},
}

// TestLayers: every package is in the table and imports only the packages of its line. Only packages
// whose line says so import Caddy.
func TestLayers(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "deep", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	below := make(map[string]bool)
	allowed := make(map[string]layer)
	for _, l := range layers {
		for dep := range strings.FieldsSeq(l.own) {
			if !below[dep] {
				t.Errorf("%s may import %s, which is not above it in the table", l.name, dep)
			}
		}
		below[l.name], allowed[l.name] = true, l.layer
	}
	for d, found := json.NewDecoder(bytes.NewReader(out)), 0; ; found++ {
		if !d.More() {
			if found != len(layers) {
				t.Errorf("the table has %d packages, and the module %d", len(layers), found)
			}
			return
		}
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		name := relative(pkg.ImportPath)
		may, ok := allowed[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
		}
		for _, dep := range pkg.Imports {
			switch own := relative(dep); {
			case own != dep:
				if meetsRequests(name) && folder(own) != "" && folder(own) != "internal/request/" {
					t.Errorf("%s imports %s, which a request does not need", name, own)
				}
				if !strings.Contains(" "+may.own+" ", " "+own+" ") {
					t.Errorf("%s imports %s", name, own)
				}
			case strings.HasPrefix(dep, "github.com/caddyserver/") && !may.caddy:
				t.Errorf("%s imports %s", name, dep)
			}
		}
	}
}

// folder returns the folder of internal that says what a package is there for, with a slash, or nothing.
func folder(name string) string {
	for _, f := range []string{"internal/request/", "internal/operate/", "internal/lab/"} {
		if strings.HasPrefix(name, f) {
			return f
		}
	}
	return ""
}

// meetsRequests reports whether a package is on the way of a request, or shared by such packages.
func meetsRequests(name string) bool {
	switch folder(name) {
	case "internal/request/":
		return true
	case "internal/operate/", "internal/lab/":
		return false
	}
	return strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "internal/testing/") || name == "config" || name == "backend" || name == "adaptive"
}

// relative returns the path of a package in the module. Other paths stay as they are.
func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// TestArchitectureNamesThePackages: ARCHITECTURE.md has a line for each package.
func TestArchitectureNamesThePackages(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		shown := l.name
		for _, line := range []string{"internal/testing/", "integration/"} { // what is below shares it
			if name, ok := strings.CutPrefix(l.name, line); ok {
				shown, _, _ = strings.Cut(name, "/")
			}
		}
		if f := folder(l.name); f != "" { // what is below has a line of its own
			shown = "\n  " + strings.TrimPrefix(l.name, f) + " "
		}
		if !bytes.Contains(text, []byte(shown)) {
			t.Errorf("%s is missing", l.name)
		}
	}
}

// TestRootIsSmall: the root only adapts the limiter to Caddy.
func TestRootIsSmall(t *testing.T) {
	const most = 6
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(files) == 0 || len(files) > most {
		t.Errorf("the root has %d files, want 1 to %d: %s", len(files), most, strings.Join(files, " "))
	}
}

// TestFilesAreShort: no file has more than 400 lines.
func TestFilesAreShort(t *testing.T) {
	const most = 400
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".":
			return fs.SkipDir
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".lua":
			return nil
		}
		text, err := os.ReadFile(path)
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, want at most %d", path, n, most)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
