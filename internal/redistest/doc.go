// Package redistest provides tests with Redis: a real redis-server process, or an
// embedded one for virtual time.
//
// # Usage
//
// The TestMain of a test binary that uses [Shared] calls [Main], which stops the
// shared server after all tests and checks for leaked goroutines:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		rdb := redistest.Shared(t)
//		topic := redistest.Name(t)
//		…
//	}
//
// Tests on the shared server run in parallel. They use names from [Name], and do not
// flush, reconfigure or stall the server. A test that does so, or that kills or
// pauses Redis, uses its own server from [Start]. A test in virtual time uses
// [Embedded] inside its synctest bubble.
//
// [Cluster] and [Sentinel] run several servers, and [StartTLS] one with TLS.
//
// # Guarantees
//
// No test is skipped: without redis-server it fails. Servers listen only on
// 127.0.0.1, on a random free port that is never 6379, and store nothing on disk
// unless the test requests it. On Linux they end with the test process, however it
// ends.
package redistest
