package redisops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
)

var (
	// ErrNotFound says that there is no such timer.
	ErrNotFound = errors.New("timer not found")

	// ErrInvalid is wrapped by errors about an argument; they name it and its
	// bound. Nothing was written.
	ErrInvalid = errors.New("invalid argument")

	// ErrWrongType says that a key holds a value of another type; the error
	// names both. Nothing was written.
	ErrWrongType = errors.New("wrong type of key")

	// ErrMemoryFull says that Redis refused to write because it has reached
	// maxmemory. Nothing was written.
	ErrMemoryFull = errors.New("redis memory is full")

	// ErrChannelDenied says that the user of the connection has no right to a
	// channel. Pollers go on by polling; events cannot be watched.
	ErrChannelDenied = errors.New("no right to the channel")

	// ErrUnsupported says that the server cannot keep timers: it is too old, or
	// a Cluster that would spread a topic over several slots.
	ErrUnsupported = errors.New("redis server not usable")

	// ErrKeyUsed says that an idempotency key was used for another call within
	// the last 24 hours. Nothing was written.
	ErrKeyUsed = errors.New("the idempotency key was used for another call")

	errReply = errors.New("unexpected reply of a script")
)

// unavailable are the beginnings of the replies of a server that is there but
// does not serve.
var unavailable = []string{
	"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "BUSY ", "TRYAGAIN ",
	"NOREPLICAS ", "MISCONF ", "ERR max number of clients",
}

// wrap says what an error of Redis means. Errors of ctx stay recognisable.
func wrap(ctx context.Context, keys []string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	// From here on a deadline is the connection's: a dial that timed out says
	// context.DeadlineExceeded too.
	var fromRedis redis.Error
	if errors.As(err, &fromRedis) {
		return wrapReply(keys, err)
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("%w: %w", exchange.ErrUnavailable, err)
	}
	return err
}

func wrapReply(keys []string, err error) error {
	text := err.Error()
	for _, prefix := range unavailable {
		if strings.HasPrefix(text, prefix) {
			return fmt.Errorf("%w: %w", exchange.ErrUnavailable, err)
		}
	}
	code, rest, _ := strings.Cut(text, " ")
	switch code {
	case "STALE":
		return fmt.Errorf("%w (sequence %s)", exchange.ErrStale, rest)
	case "WRONGTYPE":
		return wrongType(keys, rest, err)
	case "CROSSSLOT":
		return fmt.Errorf("%w: a Cluster would spread the keys of a topic; set HashTag: %w", ErrUnsupported, err)
	case "WAKEBELLKEY":
		return ErrKeyUsed
	case "OOM":
		return fmt.Errorf("%w: %w", ErrMemoryFull, err)
	}
	return err
}

// wrongType reads "index found want", what the scripts answer; with another
// text it is Redis's own error.
func wrongType(keys []string, rest string, err error) error {
	fields := strings.Fields(rest)
	if len(fields) == 3 {
		if i, e := strconv.Atoi(fields[0]); e == nil && i >= 1 && i <= len(keys) {
			return fmt.Errorf("%w: %q holds a %s, want %s", ErrWrongType, keys[i-1], fields[1], fields[2])
		}
	}
	return fmt.Errorf("%w: %w", ErrWrongType, err)
}
