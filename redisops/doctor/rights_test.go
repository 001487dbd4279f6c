package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

var commandUse = regexp.MustCompile(`(?:p?call|variadic|collect)\('([A-Z]+)'`)

// TestRightsCoverScripts checks that the rights are those that the scripts use.
func TestRightsCoverScripts(t *testing.T) {
	t.Parallel()
	s, err := timers.New(redistest.Shared(t), wakebelltype.Keys{})
	require.NoError(t, err)
	p := &topicExam{doctor: &doctor{Timers: s}, topic: "t", keys: s.Keys().Of("t")}
	// try.lua runs TIME. Without RENAME a batch goes through the script alone.
	known := []string{"TIME", "RENAME"}
	for _, r := range p.needed() {
		known = append(known, r.command)
	}
	var files []string
	for _, dir := range []string{".", "../audit", "../joins", "../timers", "../internal/scripts"} {
		found, err := filepath.Glob(dir + "/lua/*.lua")
		require.NoError(t, err)
		files = append(files, found...)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, use := range commandUse.FindAllStringSubmatch(string(text), -1) {
			require.True(t, slices.Contains(known, use[1]) || name == "bare", "%s in %s", use[1], name)
		}
	}
}

// TestRightsThatAreMissing checks that each missing right is found, with ACL DRYRUN
// or by trying.
func TestRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := newFixture(t, server.Client(t))
	admin.due(t, "a")
	require.NoError(t, admin.rdb.Persist(t.Context(), admin.key.Hint).Err()) // otherwise it may expire meanwhile
	before := admin.everything(t)
	rules := func(t *testing.T, user string, rules ...string) *fixture {
		t.Helper()
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">secret"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		require.NoError(t, admin.rdb.Do(t.Context(), args...).Err())
		f := newFixture(t, server.Client(t, storetest.NoRetries, func(o *redis.Options) { o.Username, o.Password = user, "secret" }))
		return f.on(admin.topic)
	}
	documented := []string{"~timers_*", "&timers_hint:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+time"}
	for _, c := range []struct {
		way, words string
		more       []string
	}{{way: "DRYRUN", more: []string{"+acl"}}, {way: "tried"}, {way: "tried", words: "7.2"}} {
		way, more := c.way, c.more
		rules := func(t *testing.T, user string, list ...string) *fixture {
			t.Helper()
			f := rules(t, user, list...)
			if c.words == "7.2" {
				f.rdb.AddHook(newerWords{user})
			}
			return f
		}
		allowed := slices.Concat(documented, more)
		found := rules(t, way, allowed...).diagnose(t)["rights"]
		require.Equal(t, wakebelltype.GradeGood, found.Grade, found.Found)
		require.Contains(t, found.Found, way)

		p := &topicExam{doctor: &doctor{Timers: admin.Timers}, topic: admin.topic, keys: admin.key}
		grades, tried := map[string]wakebelltype.Grade{}, map[string]bool{}
		for _, r := range p.needed() {
			grades[r.command] = worse(grades[r.command], r.grade)
			tried[r.command] = !r.untried || r.command == "SUBSCRIBE"
		}
		for command, grade := range grades {
			if way == "tried" && !tried[command] {
				continue
			}
			found := rules(t, way, append(slices.Clone(allowed), "-"+strings.ToLower(command))...).diagnose(t)["rights"]
			require.Equal(t, grade, found.Grade, "%s without %s: %s", way, command, found.Found)
			require.Contains(t, found.Found, command)
		}
		for _, base := range []string{"timeline", "payloads", "leases", "dead", "exchange", "hint", "control", "once", "keyed", "topics", "audit", "counts", "history"} {
			part := []string{"&*", "+@all"}
			if way == "tried" {
				part = append(part, "-acl")
			}
			for _, other := range []string{"timeline", "payloads", "leases", "dead", "exchange", "hint", "control", "once", "keyed", "topics", "audit", "counts", "history"} {
				if other != base {
					part = append(part, "~timers_"+other+"*")
				}
			}
			found := rules(t, way, part...).diagnose(t)["rights"]
			require.Contains(t, found.Found, "timers_"+base, "%s: %s", way, found.Found)
			require.Contains(t, found.Found, "timers_join", "%s: %s", way, found.Found)
		}
		noChannel := rules(t, way, append(slices.Clone(allowed), "resetchannels")...).diagnose(t)["rights"]
		require.Equal(t, wakebelltype.GradeWarn, noChannel.Grade, noChannel.Found)
		require.Contains(t, noChannel.Found, fmt.Sprintf("PUBLISH SUBSCRIBE on %q", admin.key.Hint))
	}
	require.Equal(t, before, admin.everything(t), "trying changes nothing")

	noScripts := rules(t, "none", "~*", "+@all", "-@scripting").diagnose(t)
	require.Equal(t, wakebelltype.GradeBad, noScripts["scripts"].Grade)
	noInfo := rules(t, "none", documented...).diagnose(t)
	require.Equal(t, wakebelltype.GradeUnknown, noInfo["eviction"].Grade)
	require.Contains(t, noInfo["eviction"].Do, "+info")
	require.Equal(t, wakebelltype.GradeGood, noInfo["version"].Grade)
}

// newerWords changes the error of a refused command of a script to that of Redis
// 7.2 and later and of Valkey (scriptVerifyACL and getAclErrorMessage there), which
// name the command and have no code; 7.0 has another text.
type newerWords struct{ user string }

func (newerWords) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w newerWords) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			w.change(cmd)
		}
		return err
	}
}

func (w newerWords) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		w.change(cmd)
		return err
	}
}

func (w newerWords) change(cmd redis.Cmder) {
	script, ok := cmd.(*redis.Cmd)
	if !ok || cmd.Err() != nil {
		return
	}
	said, ok := script.Val().(string)
	if !ok {
		return
	}
	name := "?"
	if args := cmd.Args(); len(args) > 4 { // evalsha hash 1 key command
		name = strings.ToLower(fmt.Sprint(args[4]))
	}
	said = strings.Replace(said, "The user executing the script can't run this command or subcommand",
		"ACL failure in script: User "+w.user+" has no permissions to run the '"+name+"' command", 1)
	said = strings.Replace(said, "The user executing the script can't access at least one of the keys mentioned in the command arguments",
		"ACL failure in script: No permissions to access a key", 1)
	script.SetVal(said)
}
