package redistest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// shared is the shared server of this test binary, started by the first test that
// uses it.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// sharedCluster is the shared Cluster of this test binary, likewise.
var sharedCluster struct {
	once    sync.Once
	servers Masters
	err     error
}

var (
	underMain atomic.Bool
	names     atomic.Uint64
)

// Main runs the tests of a package, stops the shared server, fails on leaked
// goroutines (opts may except some) and exits. Call it from TestMain.
func Main(m *testing.M, opts ...goleak.Option) {
	os.Exit(run(m, opts))
}

// Waiting makes n tests run at once instead of as many as there are cores, unless -parallel
// is set: for packages whose tests mostly wait. Call it from TestMain, before Main.
func Waiting(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil { // Main parses the flags later
		panic(err)
	}
}

func run(m *testing.M, opts []goleak.Option) int {
	underMain.Store(true)
	code := m.Run()
	for _, s := range append(sharedCluster.servers, shared.server) {
		if s == nil {
			continue
		}
		if err := s.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "redistest: %v\n", err)
		}
	}
	if err := os.RemoveAll(programDir); err != nil {
		fmt.Fprintf(os.Stderr, "redistest: remove the program: %v\n", err)
	}
	if code != 0 || fuzzing() {
		return code
	}
	if err := findLeaks(opts); err != nil {
		fmt.Fprintf(os.Stderr, "redistest: goroutines leaked by the tests: %v\n", err)
		return 1
	}
	return code
}

// findLeaks waits for goroutines to end: protoactor has one for a second after a
// message to a stopped actor, and the machine may stall.
func findLeaks(opts []goleak.Option) (err error) {
	for range 40 { // each of them waits about half a second
		if err = goleak.Find(opts...); err == nil {
			return nil
		}
	}
	return err
}

// fuzzing reports whether this is a run of go test -fuzz, whose own goroutines
// outlive m.Run.
func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

// Shared connects to the server that all tests of the binary share, until the end of
// the test. The test fails if redis-server is not installed, or if TestMain does not
// call [Main].
func Shared(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, &redis.Options{Addr: SharedAddr(t)}, opts...)
}

// SharedAddr returns the host:port of the shared server, for tests that create their
// own client.
func SharedAddr(t testing.TB) string {
	t.Helper()
	if !underMain.Load() {
		t.Fatal("redistest: TestMain must call redistest.Main")
	}
	shared.once.Do(func() {
		// A panic or a Goexit inside would leave both fields unset.
		shared.err = errors.New("the shared server was not started")
		shared.server, shared.err = startTemp()
	})
	if shared.err != nil {
		t.Fatalf("redistest: %v", shared.err)
	}
	return shared.server.Addr
}

// SharedCluster connects to the Cluster of three masters that all tests of the binary
// share, as [Shared] does.
func SharedCluster(t testing.TB) *redis.ClusterClient {
	t.Helper()
	if !underMain.Load() {
		t.Fatal("redistest: TestMain must call redistest.Main")
	}
	sharedCluster.once.Do(func() { sharedCluster.servers, sharedCluster.err = LaunchCluster(t.Context(), clusterMasters) })
	if sharedCluster.err != nil {
		t.Fatalf("redistest: %v", sharedCluster.err)
	}
	return sharedCluster.servers.Client(t)
}

// Name returns a name for a topic that no other call in this test binary
// returns.
func Name(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s-%d", t.Name(), names.Add(1))
}
