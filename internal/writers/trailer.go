package writers

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Unannounce removes fields from those that are announced as trailers. The fields have the form of http.Header's keys.
func Unannounce(header http.Header, fields []string) {
	const trailer = "Trailer"
	announced := header[trailer]
	if len(announced) == 0 {
		return
	}
	var rest []string
	for name := range strings.SplitSeq(strings.Join(announced, ","), ",") {
		if name = textproto.TrimString(name); name != "" && !slices.Contains(fields, textproto.CanonicalMIMEHeaderKey(name)) {
			rest = append(rest, name)
		}
	}
	if delete(header, trailer); len(rest) > 0 {
		header[trailer] = []string{strings.Join(rest, ", ")}
	}
}
