//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// deployUsers makes the deployed users, but not "default", which the tests use.
func deployUsers(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	acl, err := os.ReadFile(filepath.Join(deployed, "redis", "users.acl"))
	require.NoError(t, err)
	admin := server.Client(t)
	for line := range strings.Lines(string(acl)) {
		words := strings.Fields(line)
		if words[1] == "default" {
			continue
		}
		command := []any{"ACL", "SETUSER"}
		for _, word := range words[1:] {
			command = append(command, word)
		}
		require.NoError(t, admin.Do(t.Context(), command...).Err(), line)
	}
	return admin
}

// as returns a bundle that connects as a user.
func as(t *testing.T, addr, user string) *bundle {
	t.Helper()
	return &bundle{t: t, topic: "orders", redis: "redis://" + user + "@" + addr}
}

func approved(t *testing.T, findings string) {
	t.Helper()
	for _, f := range objects(t, findings) {
		if f["check"] != "replicas" {
			require.Equal(t, "good", f["grade"], f)
		}
	}
}

// Every command that a user of the program gives works with the deployed rights.
func TestDeployedUsersMayDoWhatProgramDoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	deployUsers(t, server)
	file := filepath.Join(t.TempDir(), "topic")
	timers := as(t, server.Addr, "wakebell:change-me")
	for _, line := range strings.Split(strings.TrimSpace(`
schedule -t TOPIC --id a --in 1h --text hi
schedule -t TOPIC --id b --key k --in 1h --once 1h
schedule -t TOPIC --id c --in 1h --count 20
get -t TOPIC a
ls -t TOPIC --text hi
reschedule -t TOPIC a --in 2h
run-now -t TOPIC b
cancel -t TOPIC a --yes
stats -t TOPIC
stats -t TOPIC --since 1h
history -t TOPIC
tail -t TOPIC
dead ls -t TOPIC
dead redrive -t TOPIC --all --yes
dead rm -t TOPIC --all --yes
pause -t TOPIC
resume -t TOPIC
retune -t TOPIC --max-concurrent 2 --per-key 1
retune -t TOPIC --clear
topics
topics --discover
topics reshard TOPIC 2 --yes
topics shards TOPIC
topics export TOPIC FILE
cancel -t TOPIC --all --yes
topics rm TOPIC --yes
topics import FILE
schedules put s --topic TOPIC --every 1h --text hi
schedules ls
schedules preview s
schedules run s
schedules rm s --yes
gate hold TOPIC --exec true
gate ls
gate show TOPIC
audit
doctor -t TOPIC`), "\n") {
		args := strings.Fields(strings.ReplaceAll(line, "FILE", file))
		_, _, stderr := timers.call(args...)
		require.NotContains(t, stderr, "NOPERM", line)
		require.NotContains(t, stderr, "rights", line)
	}
	mail := as(t, server.Addr, "wakebell-queues:change-me-too")
	for _, line := range []string{"publish --text hi", "stats", "ls", "history", "dead ls", "purge --yes"} {
		verb, flags, _ := strings.Cut(line, " ")
		args := append([]string{"queue", verb}, strings.Fields(flags)...)
		_, _, stderr := mail.call(append(args, "--queue", "mail")...)
		require.NotContains(t, stderr, "NOPERM", line)
	}
}

// What would concern others than the keys of Wakebell is denied.
func TestDeployedUsersMayDoNothingElse(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := deployUsers(t, server)
	denied := [][]any{
		{"FLUSHALL"},
		{"FLUSHDB"},
		{"SWAPDB", "0", "1"},
		{"MOVE", "timers_x", "1"},
		{"KEYS", "*"},
		{"RANDOMKEY"},
		{"SHUTDOWN"},
		{"DEBUG", "SLEEP", "1"},
		{"MIGRATE", "127.0.0.1", "6379", "timers_x", "0", "1"},
		{"RESTORE", "timers_x", "0", "x"},
		{"SORT", "timers_x"},
		{"MONITOR"},
		{"SYNC"},
		{"PSYNC", "?", "-1"},
		{"CONFIG", "SET", "maxmemory", "1"},
		{"CONFIG", "REWRITE"},
		{"CONFIG", "RESETSTAT"},
		{"REPLICAOF", "NO", "ONE"},
		{"SLAVEOF", "NO", "ONE"},
		{"FAILOVER"},
		{"CLIENT", "KILL", "TYPE", "normal"},
		{"CLIENT", "LIST"},
		{"CLIENT", "PAUSE", "1"},
		{"CLIENT", "UNBLOCK", "1"},
		{"CLIENT", "NO-EVICT", "ON"},
		{"ACL", "LIST"},
		{"ACL", "SETUSER", "x"},
		{"ACL", "GETUSER", "wakebell"},
		{"ACL", "LOAD"},
		{"SCRIPT", "FLUSH"},
		{"SCRIPT", "KILL"},
		{"SCRIPT", "DEBUG", "NO"},
		{"FUNCTION", "FLUSH"},
		{"FUNCTION", "LOAD", "x"},
		{"FUNCTION", "DELETE", "x"},
		{"FUNCTION", "RESTORE", "x"},
		{"MODULE", "LOAD", "x"},
		{"MODULE", "LIST"},
		{"SAVE"},
		{"BGSAVE"},
		{"BGREWRITEAOF"},
		{"LASTSAVE"},
		{"SLOWLOG", "RESET"},
		{"LATENCY", "RESET"},
		{"CLUSTER", "RESET"},
		{"CLUSTER", "FORGET", "x"},
		{"CLUSTER", "FAILOVER"},
		{"ROLE"},
		{"GET", "other"},
		{"SET", "other", "x"},
		{"DEL", "other"},
		{"COPY", "timers_x", "other"},
		{"RENAME", "timers_x", "other"},
		{"PUBLISH", "other", "x"},
		{"SUBSCRIBE", "other"},
		{"PSUBSCRIBE", "*"},
	}
	for _, user := range []string{"wakebell", "wakebell-queues", "wakebell-doctor"} {
		all := denied
		if user != "wakebell-doctor" {
			all = append(all, []any{"CONFIG", "GET", "masterauth"}, []any{"CONFIG", "GET", "*"})
		}
		for _, command := range all {
			answer, err := admin.Do(t.Context(), append([]any{"ACL", "DRYRUN", user}, command...)...).Text()
			require.NoError(t, err, "%s: %v", user, command)
			require.NotEqual(t, "OK", answer, "%s: %v", user, command)
		}
	}
}
