package respond

import (
	"strconv"
	"strings"
)

// mostAccepted bounds the media types of Accept that are looked at, because a client chooses how many there are.
const mostAccepted = 32

// acceptedForm returns the form that the field Accept prefers: a JSON problem if it names JSON, a page if it names
// HTML. A wildcard names nothing, so the answer is the usual one. That is also so if Accept prefers a form that is not
// offered. Between equals, the first one of those offered is chosen.
func acceptedForm(accept []string, offered []answerForm, usual answerForm) answerForm {
	var quality [htmlForm + 1]int
	left := mostAccepted
	for _, line := range accept {
		for one := range strings.SplitSeq(line, ",") {
			if left--; left < 0 {
				return bestForm(&quality, offered, usual)
			}
			name, q := acceptedType(one)
			if form := formOfType(name); form != bareForm {
				quality[form] = max(quality[form], q)
			}
		}
	}
	return bestForm(&quality, offered, usual)
}

func bestForm(quality *[htmlForm + 1]int, offered []answerForm, usual answerForm) answerForm {
	best, at := usual, 0
	for _, form := range offered {
		if quality[form] > at {
			best, at = form, quality[form]
		}
	}
	if at < max(quality[problemForm], quality[htmlForm]) {
		return usual
	}
	return best
}

// formOfType returns the form that a media type is about, or bareForm.
func formOfType(name string) answerForm {
	switch name {
	case problemMediaType, "application/json":
		return problemForm
	case "text/html", "application/xhtml+xml":
		return htmlForm
	}
	return bareForm
}

// acceptedType returns a media type of Accept in small letters, and its quality in thousandths.
func acceptedType(text string) (name string, quality int) {
	name, params, _ := strings.Cut(text, ";")
	quality = 1000
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(key), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			q = 0 // which nobody can mean as a wish
		}
		quality = int(q * 1000)
	}
	return strings.ToLower(strings.TrimSpace(name)), quality
}
