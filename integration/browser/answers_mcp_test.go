package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// TestMCP: a client of MCP tells its caller, which may be a model, that a tool was not called, even if error
// routes answer, and the session goes on.
func TestMCP(t *testing.T) {
	t.Parallel()
	type arguments struct {
		Units int `json:"units"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "search"}, func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil, nil
	})
	behind := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer behind.Close()
	s := startCaddy(t, "", `
		rate_limit {
			zone units {
				match  vars {http.rate_limit.json.method} tools/call
				rate 5/1h
				cost   {http.rate_limit.json.params.arguments.units}
			}
			headers off
		}
		handle_errors 429 {
			header Content-Type application/json
			respond "\{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":\{\"code\":-32029,\"message\":\"Wait {http.rate_limit.retry_after} seconds.\"\}\}"
		}
		reverse_proxy `+strings.TrimPrefix(behind.URL, "http://"))
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + s.site + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	search := func(units int) (string, error) {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: arguments{units}})
		if err != nil {
			return "", err
		}
		return result.Content[0].(*mcp.TextContent).Text, nil
	}
	if text, err := search(4); err != nil || text != "found" {
		t.Fatalf("%q, %v", text, err)
	}
	told := ""
	for _, units := range []int{6, 2} {
		_, err = search(units)
		if err == nil {
			t.Fatalf("%d units: not refused", units)
		}
		told += fmt.Sprintf("%d units: %v\n", units, err)
	}
	golden.Open(t, "testdata/answers.txtar", "MCP").Check(t, regexp.MustCompile(`\d+( seconds)`).ReplaceAllString(told, "N${1}"))
	if text, err := search(1); err != nil || text != "found" {
		t.Errorf("the session does not go on: %q, %v", text, err)
	}
}
