// Gate shows why a lock needs a fencing token. A worker takes the turn at a
// gate, loses its connection to Redis, and still writes after another worker has taken
// the turn. The resource has seen the newer token and refuses the old one.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/gate"
)

const gateName = "accounts"

var errStale = errors.New("a newer token was here")

// accounts is the resource. It stores the newest token that it has seen with its
// data; a database would have a column for it.
type accounts struct {
	mu     sync.Mutex
	newest uint64
	lines  []string
}

func (a *accounts) write(fence uint64, line string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fence < a.newest {
		return fmt.Errorf("%q is refused: %w", line, errStale)
	}
	a.newest, a.lines = fence, append(a.lines, line)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

// gates are those of a process.
func gates(rdb *redis.Client) (*gate.Gates, error) {
	conn, err := connection.New(rdb, connection.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return gate.New(conn, gate.Config{LeaseTTL: 500 * time.Millisecond})
}

func run(ctx context.Context, second *redis.Client, out *log.Logger) error {
	first := redis.NewClient(second.Options()) // as another process has it
	here, err := gates(first)
	if err != nil {
		return err
	}
	there, err := gates(second)
	if err != nil {
		return err
	}
	book := &accounts{}

	slow, err := here.Acquire(ctx, gateName)
	if err != nil {
		return err
	}
	out.Print("slow has the turn")
	if err := first.Close(); err != nil { // as a network failure would
		return err
	}
	out.Print("slow is cut off from Redis")

	err = there.With(ctx, gateName, func(_ context.Context, fence uint64) error {
		out.Print("quick has the turn, once the lease of slow has ended")
		out.Print("its token is newer: ", fence > slow.Fence())
		return book.write(fence, "written by quick")
	})
	if err != nil {
		return err
	}
	<-slow.Context().Done()
	out.Print("slow could know: ", context.Cause(slow.Context()))
	if err := book.write(slow.Fence(), "written by slow"); err != nil {
		out.Print(err)
	}
	out.Print("the accounts: ", book.lines)
	return errors.Join(here.Close(), there.Close())
}
