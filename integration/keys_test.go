package integration_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestOperatorsAndAFleet: a key that hammers one Caddy is banned from all, until an operator ends it by the admin API of any.
// Overrides hold everywhere too.
func TestOperatorsAndAFleet(t *testing.T) {
	fleet := harness.Three(t, harness.Caddyfile("", harness.Limited("clients", `
		key       {header.User}
		algorithm token_bucket 5/1h
		overrides
		ban       1h after 3 refusals in 10m`, harness.SharedStore(t), "respond ok")))
	client := harness.NewClient(t, "")
	status := func(user string) (all [3]int) {
		for i, s := range fleet {
			all[i] = s.Get(client, "/clients", "User", user).Status
		}
		return all
	}
	const key = "/rate_limit/zones/clients/key"
	fleet[0].Admitted(client, 8, "/clients", "User", "noisy")
	if a := fleet[2].Get(client, "/clients", "User", "noisy"); harness.RetryAfter(t, a).Minutes() < 50 {
		t.Errorf("elsewhere: %d, %v", a.Status, a.Header)
	}
	fleet[1].Must(http.MethodDelete, key+"?key=noisy", "")
	for _, step := range []struct {
		method, path, body, user string
		want                     int
	}{
		{http.MethodGet, key + "?key=noisy", "", "noisy", 200},
		{http.MethodPut, key + "/ban?key=quiet", `{"for": "1h"}`, "quiet", 429},
		{http.MethodDelete, key + "/ban?key=quiet", "", "quiet", 200},
		{http.MethodPut, key + "/override?key=friend", `{"limit": "exempt"}`, "friend", 200},
		{http.MethodPut, key + "/override?key=less", `{"limit": "0/1h"}`, "less", 429},
	} {
		fleet[1].Must(step.method, step.path, step.body)
		patient.UntilEqual(t, step.path, func() [3]int { return status(step.user) }, [3]int{step.want, step.want, step.want})
	}
	for range 5 {
		if got := status("friend"); got != [3]int{200, 200, 200} {
			t.Errorf("an exempt key: %v", got)
		}
	}
}
