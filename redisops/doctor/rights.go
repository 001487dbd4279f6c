package doctor

import (
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// none is never the id of a timer.
const none = "\x00 doctor"

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
	toTurns     = purpose{wakebelltype.GradeWarn, "topics with FairKeys are not delivered"}
	toOrder     = purpose{wakebelltype.GradeWarn, "pause, resume and retune fail"}
	toMark      = purpose{wakebelltype.GradeWarn, "schedules with Once fail"}
	toResult    = purpose{wakebelltype.GradeWarn, "progress and results of handlers are not kept"}
	toJoin      = purpose{wakebelltype.GradeWarn, "timers with After fail, and joins are not audited"}
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
	add(toResult, p.Keys().Result(p.topic, "doctor"), []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none}, []string{"HMGET", none}, []string{"PEXPIRE", "odd"})
	join := p.Timers.Keys().JoinOf(layout.EscapeColons.Replace(p.topic) + ":" + none)
	add(toJoin, p.Timers.Keys().Joins, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none}, []string{"ZRANGE", "1", "0"},
		[]string{"ZRANGEBYSCORE", "1", "0"})
	add(toJoin, join, []string{"TYPE"}, badHSet, []string{"HDEL", none}, []string{"HGET", none}, []string{"HMGET", none}, []string{"HGETALL"},
		[]string{"HINCRBY", none, "odd"}, []string{"PTTL"}, []string{"PEXPIRE", "odd"}, []string{"UNLINK"})
	add(toJoin, join+":parts", []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZSCORE", none}, []string{"ZCARD"}, []string{"ZRANGE", "1", "0"},
		[]string{"PEXPIRE", "odd"}, []string{"UNLINK"})
	add(toJoin, join+":ends", []string{"TYPE"}, badHSet, []string{"HGET", none}, []string{"HEXISTS", none}, []string{"HLEN"}, []string{"PEXPIRE", "odd"}, []string{"UNLINK"})
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
	add(toTurns, k.KeyTurns, []string{"TYPE"}, []string{"ZADD", "no score", none}, []string{"ZREM", none}, []string{"ZMSCORE", none},
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
