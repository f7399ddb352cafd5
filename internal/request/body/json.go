package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

// ReadJSON returns the one valid JSON text in UTF-8 that is in a body of at most 1 MiB, without a byte order mark and space around
// it, or why it cannot be read. It is empty without a body.
func ReadJSON(r *http.Request) (text []byte, refusal *Refusal) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	wrong := checkText(r)
	if wrong != nil && r.ContentLength > 0 { // which needs no memory, and no time to come
		return nil, wrong
	}
	whole, refusal := peek(r)
	if refusal != nil || len(whole) == 0 {
		return nil, refusal
	}
	if wrong != nil {
		return nil, wrong
	}
	text = bytes.TrimSpace(bytes.TrimPrefix(whole, []byte("\xef\xbb\xbf")))
	if b := Of(r); len(text) > 0 && !b.valid {
		if !utf8.Valid(text) || !json.Valid(text) {
			return nil, &Refusal{http.StatusBadRequest, errors.New("the body is not JSON in UTF-8")}
		}
		b.valid = true
	}
	return text, nil
}

// checkText returns a refusal if the upstream may read another text in the body than its bytes in UTF-8.
func checkText(r *http.Request) *Refusal {
	if coding := strings.Join(r.Header["Content-Encoding"], ","); coding != "" && !strings.EqualFold(coding, "identity") {
		return &Refusal{http.StatusUnsupportedMediaType, errors.New("the body has a Content-Encoding")}
	}
	types := r.Header["Content-Type"]
	if len(types) == 0 {
		return nil
	}
	_, parameters, err := mime.ParseMediaType(types[0])
	if err != nil || len(types) > 1 {
		return &Refusal{http.StatusUnsupportedMediaType, errors.New("the Content-Type is not clear")}
	}
	switch charset := strings.ToLower(parameters["charset"]); charset {
	case "", "utf-8", "utf8", "us-ascii":
		return nil
	default:
		return &Refusal{http.StatusUnsupportedMediaType, fmt.Errorf("the Content-Type has the charset %.20q, only utf-8 is read", charset)}
	}
}
