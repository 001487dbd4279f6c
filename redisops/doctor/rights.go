package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// subscribeLimit is how long the check waits for a subscription.
	subscribeLimit = 3 * time.Second
	// none is never the id of a timer.
	none = "\x00 doctor"
)

// purpose is the use of a right.
type purpose struct {
	grade   wakebelltype.Grade // grade of a missing right
	without string             // consequence of a missing right
}

var (
	toDeliver   = purpose{wakebelltype.GradeBad, "timers are not delivered"}
	toHint      = purpose{wakebelltype.GradeWarn, "timers that are due soon are found by polling"}
	toLimit     = purpose{wakebelltype.GradeWarn, "topics with flow control are not delivered"}
	toLimitKeys = purpose{wakebelltype.GradeWarn, "topics with RateLimitByKey are not delivered"}
	toOrder     = purpose{wakebelltype.GradeWarn, "pause, resume and retune fail"}
	toMark      = purpose{wakebelltype.GradeWarn, "schedules with Once fail"}
	toKeep      = purpose{wakebelltype.GradeWarn, "requests with an idempotency key fail"}
	toTell      = purpose{wakebelltype.GradeWarn, "the handler of a cancelled timer may not be notified if the id is scheduled again"}
	toKey       = purpose{wakebelltype.GradeWarn, "schedules with Key and handlers with PerKey fail"}
	toShard     = purpose{wakebelltype.GradeWarn, "topics with shards are not found"}
	toMove      = purpose{wakebelltype.GradeWarn, "topics cannot get another number of shards"}
	toRegister  = purpose{wakebelltype.GradeWarn, "the list of topics is not kept"}
	toRecord    = purpose{wakebelltype.GradeWarn, "counts and the history of attempts are missing"}
	toDivide    = purpose{wakebelltype.GradeWarn, "nodes that handle the same topic compete for its timers"}
	toReport    = purpose{wakebelltype.GradeWarn, "topics and stats do not show what nodes report, such as open circuit breakers"}
	toAudit     = purpose{wakebelltype.GradeWarn, "operations are missing in the audit"}
	toRepair    = purpose{wakebelltype.GradeWarn, "the check of orphans and wakebell repair fail"}
	toRemove    = purpose{wakebelltype.GradeWarn, "cancelling or forgetting all of a topic fails"}
)

// right is a command on a key or a channel that the user needs.
type right struct {
	purpose
	command string
	key     string   // key or channel
	rest    []string // arguments with which the command changes nothing
	untried bool     // no such arguments exist
}

// needed returns the rights that clients and nodes of a topic need. With these
// arguments a command changes nothing: it names a member that no timer has, or
// fails after its rights have been checked.
func (p *topicExam) needed() []right {
	k := p.keys
	unused := k.Stream("doctor", 0)
	var all []right
	add := func(use purpose, key string, commands ...[]string) {
		for _, c := range commands {
			all = append(all, right{purpose: use, key: key, command: c[0], rest: c[1:]})
		}
	}
	badHSet := []string{"HSET", "odd", "number", "of"}
	badSet := []string{"SET", "x", "PX", "-1"}
	add(toDeliver, k.Timeline, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none},
		[]string{"ZSCORE", none}, []string{"ZMSCORE", none}, []string{"ZCARD"}, []string{"ZCOUNT", "1", "0"},
		[]string{"ZRANGE", "1", "0"}, []string{"ZRANGEBYSCORE", "1", "0"}, []string{"ZRANK", none})
	add(toDeliver, k.Payloads, []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none},
		[]string{"HMGET", none}, []string{"HEXISTS", none}, []string{"HSTRLEN", none}, []string{"HLEN"}, []string{"HSCAN", "no cursor"})
	add(toDeliver, k.Leases, []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none},
		[]string{"HMGET", none}, []string{"HEXISTS", none}, []string{"HLEN"}, []string{"HRANDFIELD", "0"})
	add(toDeliver, k.Dead, []string{"TYPE"}, []string{"XADD", "no id", "x", "x"}, []string{"XLEN"},
		[]string{"XRANGE", "1-1", "0-1"}, []string{"XREVRANGE", "0-1", "1-1"}, []string{"XDEL", "0-0"})
	add(toDeliver, unused, []string{"TYPE"}, []string{"GETRANGE", "0", "0"}, []string{"GET"}, badSet, []string{"DEL"})
	add(toDeliver, k.Hint, []string{"TYPE"}, []string{"GET"}, badSet)
	add(toDeliver, k.Control, []string{"HGETALL"})
	add(toLimit, k.Flow, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none}, []string{"ZMSCORE", none},
		[]string{"ZCOUNT", "1", "0"}, []string{"ZRANGEBYSCORE", "1", "0"}, []string{"ZREMRANGEBYSCORE", "1", "0"}, []string{"PEXPIRE", "odd"})
	add(toHint, k.Hint, []string{"PUBLISH", "doctor"})
	add(toOrder, k.Control, []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HKEYS"})
	add(toMark, k.Mark("doctor"), []string{"TYPE"}, []string{"GET"}, badSet)
	add(toKeep, k.Keyed, []string{"TYPE"}, []string{"GET"}, badSet, []string{"HGET", none}, []string{"HMGET", none}, badHSet, []string{"PEXPIRE", "odd"})
	add(toTell, k.Cancelled(), []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none}, []string{"ZSCORE", none}, []string{"ZMSCORE", none},
		[]string{"ZRANGEBYSCORE", "1", "0"}, []string{"PTTL"}, []string{"PEXPIRE", "odd"})
	add(toKey, k.TimerKeys, []string{"TYPE"}, []string{"EXISTS"}, badHSet, []string{"HDEL", none}, []string{"HGET", none},
		[]string{"HMGET", none}, []string{"HLEN"})
	add(toKey, k.KeyOrder, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none},
		[]string{"ZRANGEBYLEX", "-", "-"}, []string{"ZLEXCOUNT", "-", "-"}, []string{"ZSCORE", none}, []string{"ZMSCORE", none}, []string{"UNLINK"})
	add(toKey, k.KeyStates, []string{"TYPE"}, []string{"EXISTS"}, badHSet, []string{"HDEL", none}, []string{"HMGET", none},
		[]string{"HINCRBY", none, "odd"}, []string{"HSCAN", "no cursor"}, []string{"HLEN"}, []string{"HEXISTS", none})
	add(toLimitKeys, k.KeyRates, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none}, []string{"ZMSCORE", none},
		[]string{"ZCOUNT", "1", "0"}, []string{"ZREMRANGEBYRANK", "1", "0"}, []string{"PEXPIRE", "odd"})
	add(toShard, p.Timers.Keys().Shards, []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none}, []string{"HGETALL"}, []string{"HINCRBY", none, "no number"})
	add(toShard, k.Layout(), []string{"TYPE"}, []string{"GET"}, badSet)
	add(toMove, k.Moving(), []string{"TYPE"}, []string{"EXISTS"}, badHSet, []string{"HDEL", none}, []string{"HGETALL"})
	add(toMove, k.Leaving(), []string{"EXISTS"})
	add(toMove, k.Taken(), []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none}, []string{"HMGET", none}, []string{"HEXISTS", none}, []string{"HINCRBY", none, "odd"})
	add(toMove, k.Counts, []string{"HSCAN", "no cursor"})
	add(toMove, k.Pins(), []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none}, []string{"PEXPIRE", "odd"})
	add(toMove, k.Arrived(), []string{"TYPE"}, badHSet, []string{"HEXISTS", none}, []string{"PEXPIRE", "odd"})
	add(toRegister, p.Timers.Keys().Topics, []string{"SREM", none}, []string{"SSCAN", "no cursor"})
	add(toRecord, k.Counts, []string{"TYPE"}, []string{"HINCRBY", none, "odd"}, []string{"EXPIRE", "odd"}, []string{"HGET", none},
		badHSet, []string{"HKEYS"}, []string{"HMGET", none}, []string{"HDEL", none}, []string{"HGETALL"})
	add(toRecord, k.History, []string{"TYPE"}, []string{"XADD", "no id", "x", "x"}, []string{"PEXPIRE", "odd"},
		[]string{"XRANGE", "1-1", "0-1"}, []string{"XREVRANGE", "0-1", "1-1"}, []string{"XDEL", "0-0"})
	add(toDivide, k.Nodes, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none}, []string{"ZSCORE", none},
		[]string{"ZREMRANGEBYSCORE", "1", "0"}, []string{"ZRANGE", "1", "0"}, []string{"PEXPIRE", "odd"}, []string{"DEL"})
	add(toReport, k.Reports, []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGETALL"}, []string{"HLEN"}, []string{"HEXISTS", none}, []string{"PTTL"}, []string{"PEXPIRE", "odd"})
	if p.Audit != nil {
		add(toAudit, p.Audit.Key(), []string{"TYPE"}, []string{"XADD", "no id", "x", "x"}, []string{"XRANGE", "1-1", "0-1"},
			[]string{"XREVRANGE", "0-1", "1-1"}, []string{"XDEL", "0-0"})
	}
	add(toRepair, k.Timeline, []string{"ZSCAN", "no cursor"})
	add(toRemove, unused, []string{"UNLINK"})
	return append(all,
		right{purpose: toHint, command: "SUBSCRIBE", key: k.Hint, untried: true},
		right{purpose: toOrder, command: "HSETNX", key: k.Control, rest: []string{none, "x"}, untried: true},
		right{purpose: toRegister, command: "SADD", key: p.Timers.Keys().Topics, rest: []string{p.topic}, untried: true})
}

// rights checks with ACL DRYRUN what the user may do, or else by trying the
// commands.
func (p *topicExam) rights(ctx context.Context) {
	missing, err := p.asked(ctx)
	way := "as ACL DRYRUN says"
	if err != nil {
		missing, err = p.tried(ctx)
		way = "as tried; HSETNX and SADD cannot be tried"
	}
	if err != nil {
		p.unknown("rights", err)
		return
	}
	if len(missing) == 0 {
		p.add("rights", wakebelltype.GradeGood, "the user has all needed rights, "+way, "")
		return
	}
	grade := wakebelltype.GradeGood
	var keys, losses []string
	commands := map[string][]string{} // by key
	for _, r := range missing {
		grade = worse(grade, r.grade)
		if commands[r.key] == nil {
			keys = append(keys, r.key)
		}
		commands[r.key] = append(commands[r.key], r.command)
		if !slices.Contains(losses, r.without) {
			losses = append(losses, r.without)
		}
	}
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%s on %q", strings.Join(commands[key], " "), key)
	}
	p.add("rights", grade, "the user may not "+strings.Join(keys, ", ")+"; "+way,
		"give the user these rights, of which docs/keys.md has the list; without them "+strings.Join(losses, ", "))
}

// asked checks every right with ACL DRYRUN, which came with Redis 7.0 and itself
// needs a right.
func (p *topicExam) asked(ctx context.Context) (missing []right, err error) {
	node := p.RDB
	if cluster, ok := p.RDB.(*redis.ClusterClient); ok {
		if node, err = cluster.MasterForKey(ctx, p.keys.Timeline); err != nil {
			return nil, scripts.Wrap(ctx, nil, err)
		}
	}
	user, err := node.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return nil, scripts.Wrap(ctx, nil, err)
	}
	needed := p.needed()
	pipe := node.Pipeline()
	replies := make([]*redis.Cmd, len(needed))
	for i, r := range needed {
		args := []any{"ACL", "DRYRUN", user, r.command, r.key}
		for _, arg := range r.rest {
			args = append(args, arg)
		}
		replies[i] = pipe.Do(ctx, args...)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for i, reply := range replies {
		said, err := reply.Text()
		switch {
		case err != nil:
			return nil, scripts.Wrap(ctx, nil, err)
		case said != "OK":
			missing = append(missing, needed[i])
		}
	}
	return missing, nil
}

// tried runs every command in a script, with arguments with which it changes
// nothing.
func (p *topicExam) tried(ctx context.Context) (missing []right, err error) {
	for _, r := range p.needed() {
		switch {
		case r.command == "SUBSCRIBE":
			err = p.trySubscribe(ctx, r.key)
		case r.untried:
			continue
		default:
			err = p.try(ctx, r.key, r.command, r.rest...)
		}
		switch {
		case scripts.IsDenied(err):
			missing = append(missing, r)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// try runs a command in a script. The error is that of the script, or that the user
// may not run the command; other errors of the command are ignored.
func (p *topicExam) try(ctx context.Context, key, command string, rest ...string) error {
	said, err := p.runCommand(ctx, key, command, rest...)
	if err == nil && scripts.IsDenied(said) {
		return said
	}
	return err
}

// runCommand runs a command in a script; said is the error of the command.
func (p *topicExam) runCommand(ctx context.Context, key, command string, rest ...string) (said, err error) {
	args := []any{command}
	for _, arg := range rest {
		args = append(args, arg)
	}
	text, err := p.RunText(ctx, tryScript, []string{key}, args...)
	if err == nil && text != "" {
		said = scripts.WrapReply([]string{key}, commandError(text))
	}
	return said, err
}

// commandError is an error that Redis returned to a script.
type commandError string

func (e commandError) Error() string { return string(e) }

func (p *topicExam) trySubscribe(ctx context.Context, channel string) error {
	sub := p.RDB.Subscribe(ctx)
	defer func() { _ = sub.Close() }() // the subscription was only a try
	err := sub.Subscribe(ctx, channel)
	if err == nil {
		_, err = sub.ReceiveTimeout(ctx, subscribeLimit)
	}
	if err != nil && !scripts.IsDenied(err) {
		err = fmt.Errorf("subscribe: %w", scripts.Wrap(ctx, nil, err))
	}
	return err
}
