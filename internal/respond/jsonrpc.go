package respond

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/body"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// The codes of JSON-RPC errors: those that JSON-RPC 2.0 leaves to servers, and the one for a wrong request.
const (
	rpcLimited      = -32029
	rpcUnavailable  = -32053
	rpcWrongRequest = -32600
)

const (
	// mostRPCBody is the longest body whose id is looked for.
	mostRPCBody = 64 << 10

	// mostRPCID is the longest id that is sent back.
	mostRPCID = 256
)

// rpcError is an answer of JSON-RPC 2.0.
type rpcError struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcReason       `json:"error"`
}

type rpcReason struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Data    problem `json:"data"`
}

// speaksJSONRPC reports whether a request is one of JSON-RPC: by its content type, by what MCP demands of a client, or
// by its body, if that was read.
func speaksJSONRPC(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	switch mediaType(r.Header.Get(fieldContentType)) {
	case "application/json-rpc", "application/jsonrequest":
		return true
	case "application/json":
	default:
		return false
	}
	if r.Header.Get("Mcp-Protocol-Version") != "" || r.Header.Get("Mcp-Session-Id") != "" {
		return true
	}
	var stream, whole bool
	for _, line := range r.Header[fieldAccept] {
		for one := range strings.SplitSeq(line, ",") {
			name, quality := acceptedType(one)
			stream = stream || quality > 0 && name == "text/event-stream"
			whole = whole || quality > 0 && name == "application/json"
		}
	}
	if stream && whole {
		return true
	}
	_, spoken := rpcIDOf(r)
	return spoken
}

// rpcIDOf returns the id of a request whose body was read, nil if there is none, and reports whether the body is a
// request of JSON-RPC 2.0. A list of requests has no single id.
func rpcIDOf(r *http.Request) (id json.RawMessage, spoken bool) {
	text := body.Seen(r, mostRPCBody)
	var members map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &members) != nil || string(members["jsonrpc"]) != `"2.0"` {
		return nil, false
	}
	id = members["id"]
	if len(id) == 0 || len(id) > mostRPCID || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return nil, true
	}
	return id, true
}

// writeJSONRPC writes an error of JSON-RPC. With the id of the request it is the answer to a call, which has status
// 200: clients of MCP do not look into the body of a 429. Without the id, or if the request itself is wrong, the status
// tells what happened.
func (t *told) writeJSONRPC(w http.ResponseWriter, r *http.Request) error {
	id, _ := rpcIDOf(r)
	status, code := t.status, rpcLimited
	switch {
	case t.kind == limiter.WrongRequest:
		code = rpcWrongRequest
	case t.kind == limiter.ReducedCapacity:
		code = rpcUnavailable
	}
	if id != nil && t.kind != limiter.WrongRequest {
		status = http.StatusOK
	}
	text, err := json.Marshal(rpcError{"2.0", id, rpcReason{code, t.summary() + ". " + t.action(), t.problem()}})
	if err != nil {
		return err
	}
	return writeBody(w, r, status, "application/json", append(text, '\n'))
}
