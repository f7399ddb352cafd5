package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// tryLogins checks the recipe for logins: by address and by user name, whatever the body looks like.
func tryLogins(t *testing.T, s *harness.Server, _ *harness.Backend) {
	t.Helper()
	try := func(from, body, password string) int {
		t.Helper()
		a := do(s, harness.NewClient(t, from), ask{method: "POST", path: "/login", body: body, header: []string{"X-Password", password}})
		return a.Status
	}
	const alice = `{"username":"alice","password":"a\"b"}`
	for i := range 12 {
		from := fmt.Sprintf("127.0.0.%d", i%4+1)
		patient.Until(t, "a login that succeeds, since the ones before were given back", func() bool { return try(from, alice, "right") == 200 })
	}
	s.AwaitUsed("all of them to be given back", "login_user", "alice", 0)
	for i := range 6 {
		if status, want := try(fmt.Sprintf("127.0.0.%d", i+1), alice, ""), map[bool]int{true: 401, false: 429}[i < 5]; status != want {
			t.Errorf("try %d for alice: status %d, want %d", i+1, status, want)
		}
	}
	for i, body := range []string{
		`{"username":"\u0061lice","password":"x"}`, `{"username":"Alice","password":"x"}`, `{"username":"bo","username":"alice","password":"x"}`,
		`{"password":"x","username":"alice"}`, `{ "username":"alice","password":"x"}`, ``, `{"username":"alice","password":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		if status := try("127.0.0.20", body, ""); status != 400 && status != 413 && (i < 5 || status != 429) {
			t.Errorf("%s: status %d", body, status)
		}
	}
	for i := range 6 {
		if status, want := try("127.0.0.30", fmt.Sprintf(`{"username":"u%d","password":"x"}`, i), ""), map[bool]int{true: 401, false: 429}[i < 5]; status != want {
			t.Errorf("user %d of one address: status %d, want %d", i, status, want)
		}
	}
}
