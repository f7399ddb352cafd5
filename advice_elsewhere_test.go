//go:build deep

package caddyratelimit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// appliedElsewhere are the tests whose set-ups have advice, or why no test can apply it, each with that advice.
var appliedElsewhere = map[string]string{
	"TestReplayAdviceIsGood":                            "replay/suggestion replay/hours replay/trusted_proxies",
	"TestFleetInOneView in integration/cli":             "doctor/agreement doctor/instances/silent",
	"TestInstances in internal/operate/doctor":          "doctor/version doctor/outage",
	"what leaks is seen in logs; see TestGoldenConfigs": "load/key/body",
	"TestRecipesHold, in the recipe of an MCP server":   "load/key/fields",
	"TestGoldenConfigs, and each test of fleets":        "load/store",
	"a test cannot set the clock of a machine":          "doctor/clock",
	"TestSilentSentinels in integration/faults":         "doctor/silent",
	"make bench-overload-real measures what it brings":  "doctor/upstream/mixed",
	"TestAdaptive in integration":                       "doctor/upstream",
	"TestWhichServer: it needs Sentinels or a Cluster": "doctor/server/cluster doctor/server/single doctor/server/sentinel doctor/server/sentinel/none " +
		"doctor/server/master doctor/server/db doctor/login/sentinel",
	"only Valkey 9.1 has rights to databases":               "doctor/rights/db",
	"TestRedirect: it needs several machines":               "doctor/server/host",
	"TestAddress: only Redis 7.0 names port 0":              "doctor/server/port",
	"a test can give no processors; TestCases":              "doctor/busy",
	"TestChecks: a test cannot hold a breaker open or fail": "doctor/breaker doctor/breaker/failing",
}

// TestAdviceAppliedElsewhere: the tests that [appliedElsewhere] names exist.
func TestAdviceAppliedElsewhere(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for by, of := range appliedElsewhere {
		for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(by, -1) {
			if !strings.Contains(tests.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: there is no %s", of, name)
			}
		}
	}
}
