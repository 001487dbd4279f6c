package scripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// FuzzWrapReply checks that any text of an error can be classified.
func FuzzWrapReply(f *testing.F) {
	f.Add("ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -OOM command not allowed")
	f.Add("WRONGTYPE 1 string hash")
	f.Add("WRONGTYPE 99999999999999999999 a b")
	f.Add("STALE ")
	f.Fuzz(func(t *testing.T, text string) {
		require.Error(t, Wrap(t.Context(), []string{"key"}, replyError(text)))
	})
}

// TestWhatRedisErrorsMean checks that every known code and sentence is listed here,
// and the other way round. The root package defines which of them may be retried.
func TestWhatRedisErrorsMean(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for code := range meanings {
		known[code] = false
	}
	for _, s := range sentences {
		known[s.begins] = false
	}
	for text, want := range map[string]error{
		"LOADING Redis is loading the dataset in memory":              exchange.ErrUnavailable,
		"READONLY You can't write against a read only one":            exchange.ErrUnavailable,
		"MASTERDOWN Link with MASTER is down":                         exchange.ErrUnavailable,
		"CLUSTERDOWN Hash slot not served":                            exchange.ErrUnavailable,
		"BUSY Redis is busy running a script":                         exchange.ErrUnavailable,
		"TRYAGAIN Multiple keys request during rehashing":             exchange.ErrUnavailable,
		"NOREPLICAS Not enough good replicas to write.":               exchange.ErrUnavailable,
		"MISCONF Redis is configured to save RDB snapshots":           exchange.ErrUnavailable,
		"UNBLOCKED force unblock, instance state changed":             exchange.ErrUnavailable,
		"ERR max number of clients reached":                           exchange.ErrUnavailable,
		"redis: all sentinels specified in configuration are not":     exchange.ErrUnavailable,
		"redis: cluster has no nodes":                                 exchange.ErrUnavailable,
		"redis: all ring shards are down":                             exchange.ErrUnavailable,
		"STALE 12":                                                    exchange.ErrStale,
		"OOM command not allowed when used memory > limit":            wakebelltype.ErrMemoryFull,
		"WRONGTYPE Operation against a key":                           wakebelltype.ErrWrongType,
		"WRONGTYPE 1 string hash":                                     wakebelltype.ErrWrongType,
		"WRONGTYPE 9 string hash":                                     wakebelltype.ErrWrongType,
		"NOPERM No permissions to access a key":                       wakebelltype.ErrDenied,
		"NOAUTH Authentication required.":                             wakebelltype.ErrDenied,
		"WRONGPASS invalid username-password pair":                    wakebelltype.ErrDenied,
		"CROSSSLOT Keys in request don't hash to the same slot":       wakebelltype.ErrUnsupported,
		"MOVED 1 127.0.0.1:7000":                                      wakebelltype.ErrUnsupported,
		"ASK 1 127.0.0.1:7000":                                        wakebelltype.ErrUnsupported,
		"ERR unknown command 'ZMSCORE', with args beginning with: ":   wakebelltype.ErrUnsupported,
		"ERR Unknown Redis command called from script script: 012345": wakebelltype.ErrUnsupported,
		// A command of a script that the user may not run: Redis 7.0, then 7.2 and
		// later, and Valkey.
		"ERR The user executing the script can't run this command or subcommand script: 01ab, on @user_script:4.":                                     wakebelltype.ErrDenied,
		"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 01ab, on @user_script:4.": wakebelltype.ErrDenied,
		"ERR ACL failure in script: User app has no permissions to run the 'zscore' command script: 01ab, on @user_script:4.":                         wakebelltype.ErrDenied,
		"ERR ACL failure in script: No permissions to access a key script: 01ab, on @user_script:4.":                                                  wakebelltype.ErrDenied,
		"ERR ACL failure in script: No permissions to access a channel script: 01ab, on @user_script:4.":                                              wakebelltype.ErrDenied,
		"ERR ACL failure in script: No permissions to access database script: 01ab, on @user_script:4.":                                               wakebelltype.ErrDenied,
		// The error of a script in Redis 6.2.
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: The user executing the script can't run this command or subcommand": wakebelltype.ErrDenied,
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'. ":          wakebelltype.ErrMemoryFull,
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica. ":            exchange.ErrUnavailable,
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: Unknown Redis command called from Lua script":                       nil,
		"ERR something else":           nil,
		"NEWCODE of a version to come": nil,
	} {
		err := Wrap(t.Context(), []string{"key"}, replyError(text))
		if want == nil {
			require.Equal(t, replyError(text), err)
			continue
		}
		require.ErrorIs(t, err, want, text)
		require.ErrorContains(t, err, lastOf(text))
		code, _, _ := strings.Cut(text, " ")
		known[code] = true
		for _, s := range sentences {
			known[s.begins] = known[s.begins] || strings.HasPrefix(text, s.begins)
		}
	}
	for begins, shown := range known {
		require.True(t, shown, "nothing shows what %q means", begins)
	}
}

// lastOf is the part of a reply that the error must contain, for diagnosis.
func lastOf(text string) string {
	if strings.HasPrefix(text, "WRONGTYPE") || strings.HasPrefix(text, "STALE") {
		return ""
	}
	return text
}

// TestWhatNetworkErrorsMean checks that all errors of a connection mean that the
// server is unavailable.
func TestWhatNetworkErrorsMean(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"refused":           &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"reset":             &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"broken pipe":       &net.OpError{Op: "write", Err: syscall.EPIPE},
		"no route":          &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"timeout":           &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"no such host":      &net.DNSError{Err: "no such host", Name: "redis", IsNotFound: true},
		"closed":            io.EOF,
		"cut off":           io.ErrUnexpectedEOF,
		"closed pipe":       io.ErrClosedPipe,
		"closed by us":      net.ErrClosed,
		"pool timeout":      redis.ErrPoolTimeout,
		"pool exhausted":    redis.ErrPoolExhausted,
		"closed client":     redis.ErrClosed,
		"a dial's deadline": context.DeadlineExceeded,
	} {
		wrapped := Wrap(t.Context(), nil, fmt.Errorf("somewhere: %w", err))
		require.ErrorIs(t, wrapped, exchange.ErrUnavailable, name)
		require.ErrorIs(t, wrapped, err, name)
	}
	require.NoError(t, Wrap(t.Context(), nil, nil))
	other := errors.New("redis: can't parse reply")
	require.Equal(t, other, Wrap(t.Context(), nil, other))
}

type replyError string

func (e replyError) Error() string { return string(e) }

func (replyError) RedisError() {}
