package key

import "testing"

// TestRootIsAKey: a request for / has a path, so its key is not the one of requests without a key, which missing_key may let
// pass.
func TestRootIsAKey(t *testing.T) {
	for template, empty := range map[string]string{
		"{http.request.uri.path}":                             "",
		"{http.request.orig_uri}":                             "",
		"at {http.request.uri.path.dir}":                      "at ",
		"{http.request.uri.path} {http.request.header.X-Key}": "0: 0:",
	} {
		k, err := New(template, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		key, err := k.Expand(requestWith(nil))
		if err != nil || key == k.Empty || k.Empty != empty {
			t.Errorf("%s: the key of a request for / is %q, %v, and that without a key %q", template, key, err, k.Empty)
		}
	}
}
