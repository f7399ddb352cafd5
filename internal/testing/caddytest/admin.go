package caddytest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// Run starts the limiter's app of a config until the test ends, so that the admin API shows
// its handlers, which must have been loaded.
func Run(t testing.TB, ctx caddy.Context) {
	t.Helper()
	app, err := ctx.App("rate_limit")
	if err != nil {
		t.Fatal(err)
	}
	if err := app.(caddy.App).Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.(caddy.App).Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Admin sends a request to the limiter's admin API, about the config that runs. The path
// starts after /rate_limit/. An answer that is an error ends the test.
func Admin(t testing.TB, method, path, body string) string {
	t.Helper()
	status, answer := AdminStatus(t, method, path, body)
	if status >= http.StatusBadRequest {
		t.Fatalf("%s %s: status %d, %s", method, path, status, answer)
	}
	return answer
}

// AdminInto is [Admin] for what is only read, as JSON.
func AdminInto(t testing.TB, path string, answer any) {
	t.Helper()
	if err := json.Unmarshal([]byte(Admin(t, http.MethodGet, path, "")), answer); err != nil {
		t.Fatal(err)
	}
}

// AdminStatus is [Admin] for answers that may be errors.
func AdminStatus(t testing.TB, method, path, body string) (status int, answer string) {
	t.Helper()
	module, err := caddy.GetModule("admin.api.rate_limit")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "http://localhost:2019/rate_limit/"+path, strings.NewReader(body))
	err = module.New().(caddy.AdminRouter).Routes()[0].Handler.ServeHTTP(w, r)
	if failed, ok := errors.AsType[caddy.APIError](err); ok {
		return failed.HTTPStatus, failed.Err.Error()
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return w.Code, w.Body.String()
}
