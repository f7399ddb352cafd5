package main

import (
	"fmt"
	"strconv"
	"strings"
)

// row is a case and what came of it.
type row struct {
	of oneCase
	v  verdict
}

var columns = []string{
	"case", "promise", "offered", "admitted", "most in a window", "beyond", "refused", "with room", "failed", "unavailable",
	"Retry-After right, short, long", "left: right, less, more",
}

func (r row) cells() []string {
	v := r.v
	servers, what, _ := strings.Cut(r.of.name, ":")
	return []string{
		"`" + servers + "`" + what, r.of.promise.text, strconv.Itoa(v.offered), strconv.Itoa(v.admitted), strconv.Itoa(v.most), strconv.Itoa(v.beyond),
		strconv.Itoa(v.refused), strconv.Itoa(v.causeless), strconv.Itoa(v.failed), fmt.Sprintf("%.1f s", v.unavailable.Seconds()),
		v.retry.String(), v.left.String(),
	}
}

func (s said) String() string {
	if s == (said{}) {
		return "–"
	}
	return fmt.Sprintf("%d, %d, %d", s.right, s.less, s.more)
}

func markdown(about string, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| %s |\n|---|---%s|\n", about, strings.Join(columns, " | "), strings.Repeat("|---:", len(columns)-2))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	return b.String()
}
