// Package uplot embeds uPlot (https://github.com/leeoniya/uPlot), a library that draws time series in
// browsers. The files are those of the npm package uplot in Version, unchanged.
package uplot

import _ "embed"

// Version is the version of the embedded files.
const Version = "1.6.32"

// Script defines the global variable uPlot. It holds no </script>, so it can be part of a page.
//
//go:embed uPlot.iife.min.js
var Script string

// Style is the stylesheet that the script needs.
//
//go:embed uPlot.min.css
var Style string

// License goes with every copy of the script: the MIT license asks for it.
//
//go:embed LICENSE
var License string
