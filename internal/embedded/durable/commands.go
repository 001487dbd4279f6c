package durable

import (
	"slices"
	"strings"
)

// kind is how a command is treated.
type kind int

const (
	reads kind = iota // or changes nothing that is stored
	writes
	refused
)

// writing are the commands that are logged. With the clock that they saw, they have the
// same effect again: SPOP has not. Snapshots contain all that they can write.
var writing = set(`
	DEL EXPIRE EXPIREAT FLUSHALL FLUSHDB PERSIST PEXPIRE PEXPIREAT RENAME RENAMENX UNLINK
	APPEND BITOP DECR DECRBY GETDEL GETEX GETSET INCR INCRBY INCRBYFLOAT MSET MSETNX PSETEX SET SETBIT SETEX SETNX SETRANGE
	HDEL HINCRBY HINCRBYFLOAT HMSET HSET HSETNX
	LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM RPOP RPOPLPUSH RPUSH RPUSHX
	SADD SDIFFSTORE SINTERSTORE SMOVE SREM SUNIONSTORE
	GEOADD ZADD ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
	XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XREADGROUP XTRIM`)

// unlogged are the commands that neither miniredis declares as reading nor are logged.
// What a script writes is logged command by command.
var unlogged = set(`
	AUTH CLIENT CLUSTER COMMAND ECHO HELLO INFO MEMORY OBJECT PING PUBLISH PUBSUB QUIT TIME WAIT XINFO
	EVAL EVALSHA SCRIPT PSUBSCRIBE PUNSUBSCRIBE SUBSCRIBE UNSUBSCRIBE`)

func set(names string) map[string]bool {
	s := map[string]bool{}
	for _, name := range strings.Fields(names) {
		s[name] = true
	}
	return s
}

// kindOf classifies a command whose name is in upper case. An unknown command is left to
// miniredis, which refuses it.
func (s *Store) kindOf(name string, args []string) kind {
	blocks := (name == "XREAD" || name == "XREADGROUP") && slices.ContainsFunc(args[:min(len(args), 7)], func(a string) bool {
		return strings.EqualFold(a, "BLOCK")
	})
	switch {
	case blocks:
		return refused
	case writing[name]:
		return writes
	case unlogged[name], s.server.IsReadOnlyCommand(name), !s.server.IsRegisteredCommand(name):
		return reads
	default:
		return refused
	}
}
