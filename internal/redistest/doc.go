// Package redistest gives tests a Redis to talk to: a real redis-server
// process, or an embedded one for virtual time.
//
// # Usage
//
// A test binary that uses [Shared] hands its TestMain to [Main], which stops
// the shared server when all tests are done and looks for leaked goroutines:
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
// Tests on the shared server run in parallel, so each keeps to names from
// [Name] and none flushes, reconfigures or stalls the server. A test that must
// do so, or that kills or pauses Redis, takes a server of its own from [Start].
// A test of virtual time takes [Embedded] inside its synctest bubble.
//
// [Cluster] and [Sentinel] run several servers that belong together, and
// [StartTLS] one that speaks TLS.
//
// # Guarantees
//
// No test is skipped: a machine without redis-server fails it. Servers listen
// on 127.0.0.1 alone, on a random free port that is never 6379, and keep
// nothing on disk unless the test asks for it. On Linux they die with the test
// process, however it ends.
package redistest
