//go:build race

package embedded

// raceDetector says whether the tests run with it.
const raceDetector = true
