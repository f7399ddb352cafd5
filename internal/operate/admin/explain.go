package admin

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/explain"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
)

// explainRequest says what would happen to a request in the running config. It is a POST because a request does not fit into
// a query, and because it runs matchers and handlers of the config.
func explainRequest(c *adminCall) (any, error) {
	var described adminapi.Request
	if err := c.readBody(&described, false, "url, and maybe method, header, body, from, server, assume"); err != nil {
		return nil, err
	}
	module, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		return nil, adminError(http.StatusNotFound, "the running config has no HTTP servers")
	}
	answer, err := explain.Explain(c.request.Context(), module.(*caddyhttp.App), running.Handler, &described)
	if err != nil {
		return nil, adminError(badRequest, "%w", err)
	}
	return answer, nil
}
