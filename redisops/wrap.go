package redisops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
)

var errReply = errors.New("unexpected reply of a script")

// meanings is what the codes of Redis's replies mean; those that are not here
// mean nothing but themselves. STALE, WRONGTYPE and CROSSSLOT say more, see wrapReply.
var meanings = map[string]error{
	// A server that is there but does not serve, or not any more.
	"LOADING":     exchange.ErrUnavailable,
	"READONLY":    exchange.ErrUnavailable,
	"MASTERDOWN":  exchange.ErrUnavailable,
	"CLUSTERDOWN": exchange.ErrUnavailable,
	"BUSY":        exchange.ErrUnavailable,
	"TRYAGAIN":    exchange.ErrUnavailable,
	"NOREPLICAS":  exchange.ErrUnavailable,
	"MISCONF":     exchange.ErrUnavailable,
	"UNBLOCKED":   exchange.ErrUnavailable,
	"OOM":         ErrMemoryFull,
	"NOPERM":      ErrDenied,
	"NOAUTH":      ErrDenied,
	"WRONGPASS":   ErrDenied,
	// A Cluster, and a client that does not know it.
	"MOVED": ErrUnsupported,
	"ASK":   ErrUnsupported,
}

// sentences are the beginnings of errors that have no code: of Redis, and of
// go-redis, which does not export them.
var sentences = []struct {
	begins string
	means  error
}{
	{"ERR max number of clients", exchange.ErrUnavailable},
	{"ERR unknown command", ErrUnsupported},
	{"ERR Unknown Redis command", ErrUnsupported}, // in a script
	{"redis: all sentinels specified", exchange.ErrUnavailable},
	{"redis: cluster has no nodes", exchange.ErrUnavailable},
	{"redis: all ring shards are down", exchange.ErrUnavailable},
}

// scriptError finds the reply that ended a script where Redis 6.2 wraps it:
// "ERR Error running script (…): @user_script:5: @user_script: 5: -OOM …".
var scriptError = regexp.MustCompile(`@user_script: ?\d+: -?([A-Z]+ .*)`)

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
	for _, s := range sentences {
		if strings.HasPrefix(err.Error(), s.begins) {
			return fmt.Errorf("%w: %w", s.means, err)
		}
	}
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

// deniedInScript reports whether Redis refused a command that a script ran. The
// refusal has no code there, and its words depend on the version.
func deniedInScript(text string) bool {
	return strings.Contains(text, "The user executing the script can't") || // Redis 6.2 and 7.0
		strings.Contains(text, "ACL failure in script: ") // Redis 7.2 and later, Valkey
}

// isDenied reports whether err, as Redis answers it or wrapped, is the refusal
// of a right that the user lacks.
func isDenied(err error) bool {
	return err != nil && (redis.IsPermissionError(err) || strings.Contains(err.Error(), "NOPERM") ||
		deniedInScript(err.Error()))
}

func wrapReply(keys []string, err error) error {
	text := err.Error()
	if deniedInScript(text) {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	if inner := scriptError.FindStringSubmatch(text); inner != nil && strings.HasPrefix(text, "ERR ") {
		text = inner[1]
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
	case "EXHAUSTED":
		return fmt.Errorf("%w (the last is %s)", ErrGateExhausted, rest)
	case "FULL":
		return fmt.Errorf("%w: %s messages wait", ErrQueueFull, rest)
	}
	if means, ok := meanings[code]; ok {
		return fmt.Errorf("%w: %w", means, err)
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
