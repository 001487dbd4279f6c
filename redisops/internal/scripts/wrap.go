package scripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ErrReply reports that a script returned an unexpected reply.
var ErrReply = errors.New("unexpected reply of a script")

// meanings maps the codes of Redis's errors to errors of this project. WrapReply
// handles STALE, WRONGTYPE and CROSSSLOT, which carry details.
var meanings = map[string]error{
	// The server is reachable but does not serve requests.
	"LOADING":     exchange.ErrUnavailable,
	"READONLY":    exchange.ErrUnavailable,
	"MASTERDOWN":  exchange.ErrUnavailable,
	"CLUSTERDOWN": exchange.ErrUnavailable,
	"BUSY":        exchange.ErrUnavailable,
	"TRYAGAIN":    exchange.ErrUnavailable,
	"NOREPLICAS":  exchange.ErrUnavailable,
	"MISCONF":     exchange.ErrUnavailable,
	"UNBLOCKED":   exchange.ErrUnavailable,
	"OOM":         wakebelltype.ErrMemoryFull,
	"NOPERM":      wakebelltype.ErrDenied,
	"NOAUTH":      wakebelltype.ErrDenied,
	"WRONGPASS":   wakebelltype.ErrDenied,
	// A Cluster that the client does not treat as one.
	"MOVED": wakebelltype.ErrUnsupported,
	"ASK":   wakebelltype.ErrUnsupported,
}

// sentences are the beginnings of errors that have no code, of Redis and of
// go-redis, which does not export them.
var sentences = []struct {
	begins string
	means  error
}{
	{"ERR max number of clients", exchange.ErrUnavailable},
	{"ERR unknown command", wakebelltype.ErrUnsupported},
	{"ERR Unknown Redis command", wakebelltype.ErrUnsupported}, // in a script
	{"redis: all sentinels specified", exchange.ErrUnavailable},
	{"redis: cluster has no nodes", exchange.ErrUnavailable},
	{"redis: all ring shards are down", exchange.ErrUnavailable},
}

// scriptError finds the error that ended a script in the text with which Redis 6.2
// wraps it: "ERR Error running script (…): @user_script:5: @user_script: 5: -OOM
// …".
var scriptError = regexp.MustCompile(`@user_script: ?\d+: -?([A-Z]+ .*)`)

// Wrap classifies an error of Redis. Errors of ctx remain recognizable.
func Wrap(ctx context.Context, keys []string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	// From here on a deadline is the connection's, because a dial that timed out
	// returns context.DeadlineExceeded too.
	for _, s := range sentences {
		if strings.HasPrefix(err.Error(), s.begins) {
			return fmt.Errorf("%w: %w", s.means, err)
		}
	}
	var fromRedis redis.Error
	if errors.As(err, &fromRedis) {
		return WrapReply(keys, err)
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

// deniedInScript reports whether Redis refused a command of a script. Within a
// script the error has no code, and its text depends on the version.
func deniedInScript(text string) bool {
	return strings.Contains(text, "The user executing the script can't") || // Redis 6.2 and 7.0
		strings.Contains(text, "ACL failure in script: ") // Redis 7.2 and later, Valkey
}

// IsDenied reports whether err, as Redis returns it or wrapped, says that the user
// lacks a right.
func IsDenied(err error) bool {
	return err != nil && (redis.IsPermissionError(err) || strings.Contains(err.Error(), "NOPERM") ||
		deniedInScript(err.Error()))
}

// WrapReply classifies an error that Redis returned.
func WrapReply(keys []string, err error) error {
	text := err.Error()
	if deniedInScript(text) {
		return fmt.Errorf("%w: %w", wakebelltype.ErrDenied, err)
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
		do := "set HashTag"
		if slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, "{}") }) {
			do = "rename the topic, its braces break the hash tag"
		}
		return fmt.Errorf("%w: a Cluster would spread the keys of a topic; %s: %w", wakebelltype.ErrUnsupported, do, err)
	case "STALELAYOUT":
		return fmt.Errorf("%w (%s)", ErrStaleLayout, rest)
	case "WAKEBELLKEY":
		return wakebelltype.ErrKeyUsed
	case "EXHAUSTED":
		return fmt.Errorf("%w (the last is %s)", wakebelltype.ErrGateExhausted, rest)
	case "FULL":
		return fmt.Errorf("%w: %s messages wait", wakebelltype.ErrQueueFull, rest)
	}
	if means, ok := meanings[code]; ok {
		return fmt.Errorf("%w: %w", means, err)
	}
	return err
}

// wrongType reads "index found want", which the scripts return; any other text is
// Redis's own error.
func wrongType(keys []string, rest string, err error) error {
	fields := strings.Fields(rest)
	if len(fields) == 3 {
		if i, e := strconv.Atoi(fields[0]); e == nil && i >= 1 && i <= len(keys) {
			return fmt.Errorf("%w: %q holds a %s, want %s", wakebelltype.ErrWrongType, keys[i-1], fields[1], fields[2])
		}
	}
	return fmt.Errorf("%w: %w", wakebelltype.ErrWrongType, err)
}
