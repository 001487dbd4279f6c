package timers

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// fetchFrom is the number of bytes of a claim's payloads from which the exchange leaves
// them out of its answer, and fetch reads them with commands of Redis: Lua would copy
// each payload several times. Below it, the second round trip costs more.
//
// It buys CPU time of Redis: a timer of 1 KiB in an exchange of 100 takes 5.6 µs instead
// of 10.5 µs, and one of 10 KiB 14 µs instead of 75 µs (go test ./redisops/timers -bench
// Exchange). Timers.NoPayloadsApart switches it off.
const fetchFrom = 32 << 10

func (t *TimerSource) fetchFrom() int {
	if t.timers.NoPayloadsApart || t.timers.transactionless.Load() {
		return 0
	}
	return fetchFrom
}

// fetch reads the payloads of the leases of a reply to a request, in one transaction
// that counts the timers with the token of the reply. If all leases are held, their
// payloads are those of the exchange.
//
// The error is errNotApart if a timer was cancelled or scheduled again since the
// exchange, if a payload has changed, or if Redis refused the transaction. The caller
// then sends the exchange again: the script judges each lease, and its answer has the
// payloads.
func (t *TimerSource) fetch(ctx context.Context, r *exchange.Request, reply *exchange.Reply) error {
	token := string(reply.Extended)
	args := make([]any, 2, 2+len(reply.Leases))
	args[0], args[1] = "hmget", t.keys.Payloads
	for i := range reply.Leases {
		args = append(args, &reply.Leases[i].ID)
	}
	payloads := redis.NewStringSliceCmd(ctx, args...)
	pipe := t.timers.RDB.TxPipeline()
	held := pipe.ZCount(ctx, t.keys.Timeline, token, token)
	_ = pipe.Process(ctx, payloads) // it only queues the command
	_, err := pipe.Exec(ctx)
	var refused redis.Error
	switch {
	case errors.As(err, &refused):
		if strings.Contains(refused.Error(), "NOPERM") { // to MULTI or EXEC: the exchange needs the rest as well
			t.timers.transactionless.Store(true)
		}
		return errNotApart
	case err != nil:
		return scripts.Wrap(ctx, []string{t.keys.Timeline, t.keys.Payloads}, err)
	case held.Val() != int64(len(reply.Leases)+extended(r, reply)):
		return errNotApart
	}
	return t.fill(reply.Leases, payloads.Val())
}

// extended returns how many extensions the exchange granted: these leases have the same
// token as the claimed ones.
func extended(r *exchange.Request, reply *exchange.Reply) int {
	n := len(r.Extend)
	for i := range reply.Refused {
		if reply.Refused[i].Index >= len(r.Settle) {
			n--
		}
	}
	return n
}

// fill puts the payloads into the leases. The exchange saw none that was empty or too
// large.
func (t *TimerSource) fill(leases []exchange.Lease, payloads []string) error {
	var copies copier
	for i, payload := range payloads {
		if payload == "" || len(payload) > t.timers.maxPayload() {
			return errNotApart
		}
		leases[i].Payload = copies.payload(payload, payloadChunk)
	}
	return nil
}
