//go:build deep && race

package world

const raceDetector = true
