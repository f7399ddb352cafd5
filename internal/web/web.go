// Package web embeds what the pages share: a script makes elements of values, another one texts of numbers and times.
package web

import "embed"

//go:embed static
var Files embed.FS
