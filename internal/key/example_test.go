package key_test

import (
	"fmt"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Values have their length before them, so a client cannot imitate the key of another one.
func ExampleTemplate_Expand() {
	t, _ := key.New("{http.request.header.Tenant}/{http.request.header.User}", 0, 0)
	r := &http.Request{Header: http.Header{"Tenant": {"acme"}, "User": {"eve/5:other"}}}
	key, _ := t.Expand(&placeholder.Request{Request: r})
	fmt.Println(key)
	// Output: 4:acme/11:eve/5:other
}
