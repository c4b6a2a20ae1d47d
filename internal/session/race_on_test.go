//go:build race

package session

// raceDetector says that the tests run many times slower.
const raceDetector = true
