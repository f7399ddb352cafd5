package uplot_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/uplot"
)

// TestFiles: the files are whole, belong to the version, can be part of a page, and load nothing.
func TestFiles(t *testing.T) {
	t.Parallel()
	if !strings.Contains(uplot.Script, "(v"+uplot.Version+")") || !strings.Contains(uplot.Script, "var uPlot=") || !strings.HasSuffix(uplot.Script, "}();\n") {
		t.Error("the script is not that of the version, or not whole")
	}
	if strings.Contains(strings.ToLower(uplot.Script), "</script") || strings.Contains(strings.ToLower(uplot.Style), "</style") {
		t.Error("the files end the elements of a page that they stand in")
	}
	if strings.Contains(uplot.Style, "url(") || strings.Contains(uplot.Style, "@import") {
		t.Error("the stylesheet loads something")
	}
	if !strings.Contains(uplot.License, "The MIT License") || !strings.Contains(uplot.License, "Leon Sorokin") {
		t.Error("the license is missing")
	}
}
