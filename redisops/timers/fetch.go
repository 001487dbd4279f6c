package timers

import (
	"context"
	"errors"
	"fmt"
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

// errNotApart reports that the payloads have to be in the answer.
var errNotApart = errors.New("payloads not read apart")

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
	args[0], args[1] = "hmget", t.keys().Payloads
	for i := range reply.Leases {
		args = append(args, &reply.Leases[i].ID)
	}
	payloads := redis.NewStringSliceCmd(ctx, args...)
	pipe := t.timers.RDB.TxPipeline()
	held := pipe.ZCount(ctx, t.keys().Timeline, token, token)
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
		return scripts.Wrap(ctx, []string{t.keys().Timeline, t.keys().Payloads}, err)
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

// A cancel of a running timer leaves a mark of the run until its lease expires, by which
// the run is notified even if the id has been scheduled again. The exchange itself does not
// read the marks: leases of replaced timers are rare, and a second call then costs the
// others nothing. See lua/cancelled.lua.

// marks returns the key of the marks for scripts that also run for a user without a right
// to it: such a script gets the timeline in its place, and marks nothing.
func (s *Timers) marks(k TopicKeys) string {
	if s.unmarked.Load() {
		return k.Timeline
	}
	return k.Cancelled()
}

// orUnmarked calls a function, and again if the user has no right to the marks or to the
// keys of orderKeys.
func (s *Timers) orUnmarked(call func() error) error {
	return orWithout(&s.unmarked, func() error { return s.orKeyless(call) })
}

// findCancelled replaces Superseded by Cancelled where a run was cancelled before its id
// was scheduled again. After an error the exchange is to be sent again, and is answered
// again.
func (t *TimerSource) findCancelled(ctx context.Context, r *exchange.Request, reply *exchange.Reply) error {
	var at []int // in reply.Refused
	var args []any
	for i := range reply.Refused {
		if reply.Refused[i].Reason != exchange.Superseded {
			continue
		}
		h := heldOf(r, reply.Refused[i].Index)
		if h == nil {
			continue
		}
		granted := ""
		if !h.Granted.IsZero() {
			granted = scripts.ScoreText(h.Granted)
		}
		at, args = append(at, i), append(args, h.ID, string(h.Token), granted)
	}
	if len(at) == 0 {
		return nil
	}
	found, err := t.timers.RunText(ctx, cancelledRunsScript, []string{t.keys().Cancelled()}, args...)
	if err != nil {
		return err
	}
	if len(found) != len(at) {
		return fmt.Errorf("%w: %d answers for %d runs", scripts.ErrReply, len(found), len(at))
	}
	for k, i := range at {
		if found[k] == '1' {
			reply.Refused[i].Reason = exchange.Cancelled
		}
	}
	return nil
}

// heldOf returns the lease of a request that a refusal is about, or nil.
func heldOf(r *exchange.Request, index int) *exchange.Held {
	switch n := len(r.Settle); {
	case index < 0 || index >= n+len(r.Extend):
		return nil
	case index < n:
		return &r.Settle[index].Held
	default:
		return &r.Extend[index-n]
	}
}
