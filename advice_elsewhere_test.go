package caddyratelimit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// appliedElsewhere is advice that set-ups of other tests have, with the test, or why no test can apply it.
var appliedElsewhere = map[string]string{
	"get/reset":                   "TestWhyIsItRefused in integration/cli",
	"get/reset/set":               "TestRemedies in integration/cli",
	"get/unban":                   "TestWhyIsItRefused and TestRemedies in integration/cli",
	"get/clear":                   "TestWhyIsItRefused in integration/cli",
	"get/blocked":                 "TestWhyIsItRefused in integration/cli",
	"get/config":                  "TestRemedies in integration/cli",
	"get/config/never":            "TestRemedies in integration/cli",
	"get/exempt":                  "TestRemedies in integration/cli",
	"get/slots":                   "TestRemedies in integration/cli",
	"get/unban/clear":             "TestRemedies in integration/cli",
	"get/unban/reset":             "TestRemedies in integration/cli",
	"get/unban/slots":             "TestRemedies in integration/cli",
	"replay/suggestion":           "TestReplayAdviceIsGood",
	"replay/trusted_proxies":      "TestReplayAdviceIsGood",
	"doctor/overrides":            "a test cannot wait a week; TestRules in internal/doctor finds them",
	"doctor/overrides/same":       "TestSameOverride, and TestNamedCommandsExist in internal/cli",
	"doctor/agreement":            "TestDoctorFindsWhatIsWrong: it needs a second process",
	"doctor/instances/silent":     "TestFleetInOneView in integration/cli: it needs a second process",
	"doctor/version":              "TestCompare in internal/doctor: a test has one version of the module",
	"doctor/outage":               "TestCompare in internal/doctor: it needs a network of several machines",
	"doctor/load":                 "TestCompare in internal/doctor: it needs a load balancer",
	"doctor/clock/step":           "TestStepOfTheClockIsTold: as doctor/clock",
	"load/key/body":               "what leaks is seen in logs, not in numbers; TestWarningsAtLoad has the set-up",
	"load/key/fields":             "TestRecipesHold has it, in the recipe of an MCP server",
	"load/store":                  "TestGoldenLoad has the set-up; TestDoctorFindsWhatIsWrong and each test of fleets has the store",
	"doctor/clock":                "a test cannot set the clock of a machine; limits of a fleet follow the clock of Redis alone",
	"doctor/silent":               "TestSilentSentinels in integration/faults: limits hold with a silent Sentinel and without",
	"doctor/upstream/mixed":       "it takes seconds of slow requests; make bench-overload-real measures what it brings",
	"doctor/upstream":             "a test can give an upstream no capacity; TestReload in integration/overload lets more run",
	"doctor/server/cluster":       "TestWhichServer in internal/pool: it needs a Cluster",
	"doctor/server/single":        "TestWhichServer in internal/pool",
	"doctor/server/sentinel":      "TestWhichServer in internal/pool: it needs Sentinels",
	"doctor/server/sentinel/none": "TestWhichServer in internal/pool: it needs Sentinels",
	"doctor/server/master":        "TestWhichServer in internal/pool: it needs Sentinels",
	"doctor/server/db":            "TestWhichServer in internal/pool",
	"doctor/login/sentinel":       "TestWhichServer in internal/pool: it needs Sentinels",
	"doctor/rights/db":            "only Valkey 9.1 has rights to databases",
	"doctor/server/host":          "TestRedirect in redisstore/internal/topology: nodes that cannot be told apart are on several machines",
	"doctor/server/port":          "TestAddress in redisstore/internal/topology: only Redis 7.0 names port 0",
	"doctor/busy":                 "a test can give no processors; TestLend shows that lend saves calls",
	"doctor/breaker":              "TestChecks in internal/doctor has a breaker without a cause, which a test cannot hold open",
	"doctor/breaker/failing":      "TestChecks in internal/doctor: calls fail without a cause for some seconds only",
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
	for of, by := range appliedElsewhere {
		for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(by, -1) {
			if !strings.Contains(tests.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: there is no %s", of, name)
			}
		}
	}
}
