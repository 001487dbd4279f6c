package connection

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultSilence is the default of DialTimeout and ReadTimeout in [FailoverOptions]: 1 s.
const DefaultSilence = time.Second

// FailoverOptions returns options for redis.NewFailoverClient with which a client soon asks
// another Sentinel when the one that it asks is silent, as after a cut of the network that
// parts it together with the master. It takes three seconds with the defaults, and eight if
// the silent one still accepts connections. With any options of its own go-redis needs
// most of a minute for that, or never stops asking, because its dial of the master times
// out before it gives the Sentinel up (https://github.com/redis/go-redis/issues/3652).
//
// DialTimeout bounds each dial, of a Sentinel and of a master, and ReadTimeout each answer;
// both are 1 s by default. DialerRetries is 1 by default. The DialTimeout of the options
// returned is longer: it bounds the search of a master. A server that did not answer a dial
// in time is not dialled again for a DialTimeout. O is not changed. A negative timeout
// waits without end, as in go-redis, and so does the search.
func FailoverOptions(o *redis.FailoverOptions) *redis.FailoverOptions {
	made := *o
	dial := cmp.Or(made.DialTimeout, DefaultSilence)
	made.ReadTimeout = cmp.Or(made.ReadTimeout, DefaultSilence)
	made.DialerRetries = cmp.Or(made.DialerRetries, 1)
	if dial < 0 || made.ReadTimeout < 0 {
		return &made
	}
	dialer := made.Dialer
	if dialer == nil {
		dialer = redis.NewDialer(&redis.Options{DialTimeout: dial, TLSConfig: made.TLSConfig})
	}
	made.Dialer = (&dials{dial: dialer, timeout: dial}).Dial
	// A Sentinel is asked twice, each time with the retries of the client, before it is
	// given up; only the first of these wait for a dial.
	asked := time.Duration(2 * (1 + max(0, cmp.Or(made.MaxRetries, defaultMaxRetries))))
	made.DialTimeout = (1+asked)*max(dial, made.ReadTimeout) + maxBackoff
	return &made
}

const (
	defaultMaxRetries = 3 // of go-redis
	maxBackoff        = 3 * time.Second
)

// dials bounds dials, and remembers which servers do not answer them.
type dials struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	timeout time.Duration

	mu     sync.Mutex
	silent map[string]silence // by address; as many as fail within a timeout
}

// silence is a dial that timed out.
type silence struct {
	err   error
	until time.Time // when the server is dialled again
}

// Dial dials a server, unless it has just been silent.
func (d *dials) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := d.recent(addr); err != nil {
		return nil, err
	}
	attempt, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := d.dial(attempt, network, addr)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && ctx.Err() == nil {
		d.remember(addr, err)
	}
	return conn, err
}

// recent returns the error of a dial that timed out a moment ago.
func (d *dials) recent(addr string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for a, s := range d.silent {
		if !now.Before(s.until) {
			delete(d.silent, a)
		}
	}
	return d.silent[addr].err
}

func (d *dials) remember(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.silent == nil {
		d.silent = map[string]silence{}
	}
	d.silent[addr] = silence{err: err, until: time.Now().Add(d.timeout)}
}
