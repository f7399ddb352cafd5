package caddyratelimit_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsPointDown: root -> stores -> store -> algorithms -> lua, and only the root
// knows Caddy.
func TestImportsPointDown(t *testing.T) {
	const module = "github.com/seed-161337e5/caddyratelimit"
	for pkg, allowed := range map[string][]string{
		"/lua":             {},
		"/algorithms":      {"/lua"},
		"/store":           {"/algorithms", "/lua"},
		"/memorystore":     {"/store", "/algorithms", "/lua"},
		"/redisstore":      {"/store", "/algorithms", "/lua"},
		"":                 {"/memorystore", "/redisstore", "/store", "/algorithms", "/lua", "/internal/topk", "/internal/turns"},
		"/cmd/caddy":       {"", "/memorystore", "/redisstore", "/store", "/algorithms", "/lua", "/internal/topk", "/internal/turns"},
		"/internal/topk":   {},
		"/internal/turns":  {},
		"/store/storetest": {"/store", "/algorithms", "/lua", "/internal/deep", "/internal/patient"},
	} {
		out, err := exec.Command("go", "list", "-deps", module+pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		for dep := range strings.Lines(string(out)) {
			dep = strings.TrimSpace(dep)
			if own, ok := strings.CutPrefix(dep, module); ok {
				if own != pkg && !slices.Contains(allowed, own) {
					t.Errorf("%s imports %s", module+pkg, dep)
				}
			} else if strings.HasPrefix(dep, "github.com/caddyserver/caddy/") && pkg != "" && pkg != "/cmd/caddy" {
				t.Errorf("%s imports %s", module+pkg, dep)
			}
		}
	}
}
