package redistest

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Addresses of tests come from below the ports of redis-servers, and those from
// below what systems give to outgoing connections.
const minAddress, maxAddress = 10_000, minPort

var addresses sync.Map // ports that were given away

// Address returns a host:port of 127.0.0.1 at which nobody listens, for a server
// that comes later, or never. No other call in this test binary returns it, and
// neither a connection nor a listener that takes any port takes it by chance: one
// that dials a port of theirs again and again connects to itself in the end.
func Address(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := minAddress + rand.IntN(maxAddress-minAddress)
		if _, taken := addresses.LoadOrStore(port, true); taken {
			continue
		}
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
