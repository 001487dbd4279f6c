package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Bound is how long a command may block Redis.
	Bound = 10 * time.Millisecond

	// referenceCost is the CPU time of [reference] on the idle AMD EPYC that most figures of
	// docs/scale.md are from.
	referenceCost = 6 * time.Millisecond

	meterTries = 5
	meterShown = 160 // bytes of a command in a failure
)

// reference is fixed work of the kind that our scripts do.
var reference = redis.NewScript(`
for i = 1, 2000 do
  redis.call('ZADD', KEYS[1], i, 'timer ' .. i)
  redis.call('HSET', KEYS[2], 'timer ' .. i, 'payload ' .. i)
end
redis.call('DEL', KEYS[1], KEYS[2])`)

// Meter measures how long single commands block Redis. Unlike SLOWLOG, which includes
// the time that other processes use on a busy machine, it counts the CPU time of
// Redis's main thread.
type Meter struct {
	t       testing.TB
	info    *redis.Client
	slowest time.Duration
	command string
}

// Meter starts measuring the commands of rdb. They must come from one goroutine, and
// nothing else may use the server.
func (s *Server) Meter(t testing.TB, rdb *redis.Client) *Meter {
	t.Helper()
	m := &Meter{t: t, info: s.Client(t)}
	rdb.AddHook(m)
	return m
}

// Bounded fails the test if a command of op takes more than [Bound] in each of up to 5
// repetitions: other processes can make a command slow by chance. Each repetition must
// do the same work. The bound is for an idle AMD EPYC; where a reference takes longer at
// the moment, commands may take longer by the same factor.
func (m *Meter) Bounded(name string, op func()) {
	m.t.Helper()
	var tries []string
	for range meterTries {
		slowest, command := m.Slowest(op)
		if slowest <= Bound {
			return
		}
		slowness := Slowness(m.t, m.info)
		if float64(slowest) <= float64(Bound)*slowness {
			return
		}
		tries = append(tries, fmt.Sprintf("%v while the reference took %.1f times as long as it should: %s", slowest, slowness, command))
	}
	m.t.Errorf("%s: a command took more than %v of CPU time, each of %d times:\n%s",
		name, Bound, meterTries, strings.Join(tries, "\n"))
}

// Slowest returns the most CPU time that one command of op takes, and that command.
func (m *Meter) Slowest(op func()) (time.Duration, string) {
	m.slowest, m.command = 0, ""
	op()
	return m.slowest, m.command
}

// Slowness returns the factor by which fixed work of scripts takes longer than it should on
// the Redis of rdb, at the moment: the median of five runs. Nothing else may use the server.
func Slowness(t testing.TB, rdb redis.UniversalClient) float64 {
	t.Helper()
	keys := []string{Name(t), Name(t)}
	took := make([]time.Duration, 5)
	for i := range took {
		before := mainThread(t, rdb)
		if err := reference.Run(t.Context(), rdb, keys).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("redistest: reference: %v", err)
		}
		took[i] = mainThread(t, rdb) - before
	}
	slices.Sort(took)
	return float64(took[len(took)/2]) / float64(referenceCost)
}

// mainThread returns the CPU time that Redis's main thread has used.
func mainThread(t testing.TB, rdb redis.UniversalClient) time.Duration {
	t.Helper()
	info, err := rdb.InfoMap(t.Context(), "cpu").Result()
	if err != nil {
		t.Errorf("redistest: info: %v", err)
		return 0
	}
	var sum float64
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			t.Errorf("redistest: info: %s: %v", field, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// DialHook does nothing.
func (m *Meter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook does nothing: pipelines are not measured.
func (m *Meter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook measures one command.
func (m *Meter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		before := mainThread(m.t, m.info)
		err := next(ctx, cmd)
		if took := mainThread(m.t, m.info) - before; took > m.slowest {
			m.slowest, m.command = took, fmt.Sprintf("%.*s", meterShown, cmd.String())
		}
		return err
	}
}
