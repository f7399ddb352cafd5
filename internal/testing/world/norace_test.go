//go:build deep && !race

package world

const raceDetector = false
