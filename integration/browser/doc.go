// Package browser tests the page in a real browser: headless Chromium, in front of a fleet of two instances
// with a Redis. It is a module of its own because of the files in testdata, which users
// of the limiter do not need. For the same reason refusals are tested here with clients of gRPC and MCP, with
// curl, and in the browser.
package browser
