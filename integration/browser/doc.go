// Package browser tests the page in a real browser: headless Chromium, in front of a fleet of two Caddys
// with a Redis. It is a module of its own because of what stands in testdata, which nobody needs who
// only uses the limiter.
package browser
