package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestChangesAreNotOfTheFleet: only what is read can be asked of all instances. A change with the parameter is refused.
func TestChangesAreNotOfTheFleet(t *testing.T) {
	for method, refused := range map[string]bool{http.MethodGet: false, http.MethodDelete: true} {
		r := httptest.NewRequest(method, "/rate_limit/zones/z/key?key=a&fleet=1", nil)
		c := &adminCall{request: r, query: r.URL.Query()}
		if _, err := c.serve("zones/*/key", func(c *adminCall) (any, error) { return nil, c.checkParameters("key") }); (err != nil) != refused {
			t.Errorf("%s: %v, want an error: %v", method, err, refused)
		}
	}
}
