// Package browser tests the dashboard in a real Chromium: make browser-test. It also
// makes the pictures of docs/dashboard: make screenshots. It is a module of its own,
// so that the library does not depend on a driver for browsers.
package browser
