package redistest

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The ports of tests are below those of redis-servers, and both are below the range
// that systems use for outgoing connections.
const minAddress, maxAddress = 10_000, minPort

var addresses sync.Map // ports that Address has returned

// Address returns a host:port of 127.0.0.1 without a listener, for a server that is
// started later or never. No other call in this test binary returns it before the test
// ends. The port is outside of the ephemeral range: a client that dials an ephemeral
// port repeatedly may connect to itself.
func Address(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := minAddress + rand.IntN(maxAddress-minAddress)
		if _, taken := addresses.LoadOrStore(port, true); taken {
			continue
		}
		t.Cleanup(func() { addresses.Delete(port) }) // a long run would use up the range
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatalf("redistest: probe port %d: %v", port, err)
		}
		return address(port)
	}
	t.Fatal("redistest: no free port")
	return ""
}
