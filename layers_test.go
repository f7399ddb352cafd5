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

// layer is what a package may import.
type layer struct {
	caddy bool   // Caddy, and with it all that Caddy imports
	own   string // packages of this module
}

// layers has every package of the module, from the bottom up, and the packages that it may import.
// These must be above it in this table, so no package imports upward.
var layers = []struct {
	name string
	layer
}{
	{"internal/advice", layer{}},
	{"internal/suggest", layer{}},
	{"internal/duration", layer{}},
	{"internal/msgpack", layer{}},
	{"algorithms", layer{own: "internal/duration internal/suggest"}},
	{"algorithms/lend", layer{own: "algorithms internal/duration"}},
	{"store", layer{own: "algorithms algorithms/lend internal/duration internal/msgpack"}},
	{"lua", layer{own: "algorithms algorithms/lend store"}},
	{"memorystore/internal/prefetch", layer{}},
	{"memorystore", layer{own: "algorithms internal/advice internal/duration memorystore/internal/prefetch store"}},
	{"internal/throttle", layer{}},
	{"redisstore/internal/keys", layer{own: "store"}},
	{"redisstore/internal/layer", layer{own: "algorithms store"}},
	{"redisstore/internal/protocol", layer{own: "algorithms algorithms/lend internal/msgpack lua store"}},
	{"redisstore/internal/loans", layer{own: "algorithms algorithms/lend store"}},
	{"redisstore/internal/outbox", layer{own: "algorithms redisstore/internal/layer store"}},
	{"redisstore/internal/node", layer{own: "internal/advice redisstore/internal/protocol store"}},
	{"redisstore/internal/topology", layer{own: "internal/advice redisstore/internal/node store"}},
	{"redisstore/internal/link", layer{own: "algorithms algorithms/lend internal/throttle lua redisstore/internal/keys redisstore/internal/layer redisstore/internal/node " +
		"redisstore/internal/outbox redisstore/internal/protocol store"}},
	{"redisstore/internal/multislot", layer{own: "algorithms redisstore/internal/layer redisstore/internal/link redisstore/internal/protocol store"}},
	{"redisstore/internal/refusals", layer{own: "algorithms redisstore/internal/layer redisstore/internal/node store"}},
	{"redisstore/internal/lending", layer{own: "algorithms algorithms/lend redisstore/internal/layer redisstore/internal/link redisstore/internal/loans redisstore/internal/node " +
		"redisstore/internal/protocol redisstore/internal/refusals store"}},
	{"redisstore", layer{own: "algorithms internal/advice internal/duration internal/throttle lua redisstore/internal/keys redisstore/internal/layer redisstore/internal/lending redisstore/internal/link " +
		"redisstore/internal/loans redisstore/internal/multislot redisstore/internal/node redisstore/internal/protocol redisstore/internal/refusals redisstore/internal/topology store"}},
	{"internal/topk", layer{}},
	{"internal/usage", layer{}},
	{"internal/outcome", layer{}},
	{"internal/adminapi", layer{own: "algorithms internal/advice"}},
	{"internal/uplot", layer{}},
	{"internal/replay/logs", layer{}},
	{"internal/replay", layer{own: "internal/advice internal/replay/logs internal/uplot"}},
	{"internal/clientip", layer{caddy: true, own: "internal/advice"}},
	{"internal/logging", layer{caddy: true}},
	{"internal/option", layer{caddy: true, own: "internal/suggest"}},
	{"internal/placeholder", layer{caddy: true, own: "internal/suggest"}},
	{"internal/key", layer{caddy: true, own: "internal/placeholder"}},
	{"internal/stats", layer{own: "internal/advice internal/outcome internal/topk"}},
	{"internal/feed", layer{own: "algorithms internal/adminapi internal/clientip internal/outcome internal/topk store"}},
	{"internal/cases", layer{caddy: true, own: "internal/duration internal/option internal/suggest"}},
	{"internal/clock", layer{}},
	{"internal/gate", layer{}},
	{"internal/turns", layer{own: "internal/clock"}},
	{"internal/pool", layer{caddy: true, own: "algorithms internal/advice internal/clock internal/gate internal/logging internal/stats internal/topk internal/turns memorystore store"}},
	{"internal/fleet", layer{own: "internal/adminapi internal/outcome internal/topk store"}},
	{"internal/cli", layer{caddy: true, own: "internal/adminapi internal/advice internal/cases internal/duration internal/fleet internal/outcome internal/replay"}},
	{"limit", layer{caddy: true, own: "algorithms internal/duration internal/option internal/placeholder"}},
	{"internal/body", layer{caddy: true}},
	{"cost", layer{caddy: true, own: "internal/body internal/duration internal/option internal/suggest internal/usage"}},
	{"internal/zone", layer{caddy: true, own: "algorithms cost internal/body internal/clientip internal/duration internal/gate internal/key internal/outcome internal/placeholder internal/stats internal/throttle internal/usage limit store"}},
	{"backend", layer{caddy: true, own: "internal/duration internal/logging internal/option memorystore redisstore store"}},
	{"internal/doctor", layer{own: "internal/adminapi internal/advice internal/outcome internal/stats internal/topk store"}},
	{"internal/metrics", layer{own: "internal/gate internal/outcome internal/pool internal/stats internal/zone limit store"}},
	{"internal/walk", layer{caddy: true}},
	{"internal/incoming", layer{caddy: true, own: "internal/adminapi internal/placeholder internal/walk"}},
	{"internal/page", layer{own: "internal/uplot"}},
	{"internal/routes", layer{caddy: true}},
	{"internal/writers", layer{caddy: true}},
	{"internal/late", layer{caddy: true, own: "algorithms cost internal/clock internal/gate internal/logging internal/pool internal/stats internal/usage internal/writers internal/zone limit store"}},
	{"internal/limiter", layer{caddy: true, own: "algorithms internal/clientip internal/clock internal/feed internal/gate internal/key internal/late internal/outcome internal/placeholder internal/pool " +
		"internal/stats internal/throttle internal/turns internal/zone store"}},
	{"internal/replay/engine", layer{caddy: true, own: "algorithms cost internal/advice internal/clientip internal/clock internal/late internal/limiter internal/outcome internal/placeholder internal/pool internal/replay internal/replay/logs internal/stats internal/walk internal/zone limit memorystore store"}},
	{"internal/cases/engine", layer{caddy: true, own: "algorithms internal/adminapi internal/cases internal/clientip internal/clock internal/duration internal/incoming internal/late internal/limiter internal/outcome internal/pool internal/suggest internal/walk internal/zone memorystore store"}},
	{"internal/compare", layer{caddy: true, own: "internal/adminapi internal/placeholder internal/zone"}},
	{"internal/admin", layer{caddy: true, own: "algorithms internal/adminapi internal/cases internal/cases/engine internal/clientip internal/clock internal/compare internal/doctor internal/duration internal/feed internal/fleet internal/gate internal/incoming internal/key internal/limiter internal/logging internal/outcome internal/page internal/placeholder internal/pool internal/replay internal/replay/engine internal/replay/logs " +
		"internal/stats internal/suggest internal/topk internal/walk internal/zone limit store"}},
	{"internal/report", layer{caddy: true, own: "internal/clientip internal/limiter internal/logging internal/outcome internal/stats internal/throttle internal/zone store"}},
	{"internal/respond", layer{caddy: true, own: "algorithms internal/late internal/limiter internal/outcome internal/placeholder internal/writers internal/zone"}},
	{".", layer{caddy: true, own: "algorithms backend cost internal/admin internal/advice internal/cli internal/clientip internal/duration internal/gate internal/key internal/limiter internal/logging " +
		"internal/metrics internal/option internal/placeholder internal/pool internal/report internal/respond internal/routes internal/suggest internal/zone limit memorystore store"}},
	{"cmd/caddy", layer{caddy: true, own: "."}},

	// What only tests and documentation use.
	{"internal/testing/deep", layer{}},
	{"internal/testing/english", layer{}},
	{"internal/testing/patient", layer{}},
	{"internal/testing/faultproxy", layer{}},
	{"internal/testing/golden", layer{}},
	{"internal/testing/filelock", layer{}},
	{"internal/testing/buildcaddy", layer{own: "internal/testing/filelock"}},
	{"internal/testing/childprocess", layer{}},
	{"internal/testing/mutants", layer{own: "lua"}},
	{"internal/testing/platforms", layer{}},
	{"internal/testing/redistest", layer{own: "internal/testing/childprocess internal/testing/filelock internal/testing/patient"}},
	{"internal/testing/caddytest", layer{caddy: true, own: "algorithms internal/pool internal/testing/golden internal/testing/patient internal/testing/redistest memorystore redisstore store"}},
	{"internal/testing/samplelog", layer{}},
	{"internal/testing/samplelog/write", layer{own: "internal/testing/samplelog"}},
	{"internal/testing/model", layer{own: "algorithms"}},
	{"internal/testing/model/vectors", layer{own: "algorithms"}},
	{"internal/testing/linear", layer{own: "algorithms internal/testing/patient store"}},
	{"internal/testing/picture/recording", layer{}},
	{"internal/testing/picture", layer{own: "algorithms internal/testing/picture/recording"}},
	{"internal/testing/jsondoc", layer{}},
	{"internal/testing/simredis", layer{}},
	{"internal/testing/world", layer{caddy: true, own: "algorithms algorithms/lend cost internal/clock internal/key internal/limiter internal/outcome internal/pool internal/testing/model internal/testing/simredis internal/zone limit lua redisstore store"}},
	{"redisstore/internal/layer/layertest", layer{own: "algorithms memorystore redisstore/internal/layer store"}},
	{"store/storetest", layer{own: "algorithms algorithms/lend internal/testing/deep internal/testing/patient store"}},

	// A store as other people write them: it imports what a module in another repository can.
	{"examples/simplestore", layer{caddy: true, own: "algorithms store"}},
	{"examples/apiclient", layer{}},
	{"docs", layer{}},
	{"integration/internal/harness", layer{own: "internal/testing/buildcaddy internal/testing/childprocess internal/testing/deep internal/testing/golden internal/testing/patient internal/testing/redistest"}},
	{"integration/admin", layer{}},
	{"integration/cli", layer{}},
	{"integration/costs", layer{}},
	{"integration/docs", layer{}},
	{"integration/faults", layer{}},
	{"integration/floods", layer{}},
	{"integration/headers", layer{}},
	{"integration/keys", layer{}},
	{"integration/limits", layer{}},
	{"integration/observe", layer{}},
	{"integration/overload", layer{}},
	{"integration/queues", layer{}},
	{"integration/trouble", layer{}},
}

// TestLayers: every package is in the table and imports only the packages of its line. Only packages
// whose line says so import Caddy.
func TestLayers(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
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
				if !strings.Contains(" "+may.own+" ", " "+own+" ") {
					t.Errorf("%s imports %s", name, own)
				}
			case strings.HasPrefix(dep, "github.com/caddyserver/") && !may.caddy:
				t.Errorf("%s imports %s", name, dep)
			}
		}
	}
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
		if !bytes.Contains(text, []byte(shown)) {
			t.Errorf("%s is missing", l.name)
		}
	}
}

// TestRootIsSmall: the root only adapts the limiter to Caddy.
func TestRootIsSmall(t *testing.T) {
	const most = 11
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
