package redisops

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	exchangeScript   = load("exchange")
	scheduleScript   = load("schedule")
	cancelScript     = load("cancel")
	cancelAllScript  = load("cancel_all")
	getScript        = load("get")
	rescheduleScript = load("reschedule")
	runNowScript     = load("run_now")
	listScript       = load("list")
	glanceScript     = load("glance")
	countScript      = load("count")
	deadScript       = load("dead")
	deleteDeadScript = load("delete_dead")
	redriveScript    = load("redrive")
	healScript       = load("heal")
	controlScript    = load("control")
	statsScript      = load("stats")
	bareScript       = load("bare")
	tryScript        = load("try")
	lastDeadScript   = load("last_dead")

	apartScript = bare("apart")

	keyedScheduleScript = keyed("schedule")
	keyedCancelScript   = keyed("cancel")
	queueExchangeScript = load("queue_exchange")
	queuePublishScript  = load("queue_publish")
	queueLettersScript  = load("queue_letters")
	queueRedriveScript  = load("queue_redrive")
	queueDiscardScript  = load("queue_discard")
	queueHealScript     = load("queue_heal")
	queuePurgeScript    = load("queue_purge")
	queueStatsScript    = load("queue_stats")
	gateExchangeScript  = load("gate_exchange")
	gateBeatScript      = load("gate_beat")
	gatePlacesScript    = load("gate_places")
	gateShowScript      = load("gate_show")
	gateReleaseScript   = load("gate_release")
	gateGuardScript     = load("gate_guard")
	gateRepairScript    = load("gate_repair")
	gateRemoveScript    = load("gate_remove")
	beatLookScript      = load("beat_look")
	beatFireScript      = load("beat_fire")
	beatOnceScript      = once("beat_fire")
	beatPutScript       = load("beat_put")
	beatDeleteScript    = load("beat_delete")
	beatSendScript      = load("beat_send")
)

// load reads an embedded script; a file that is missing is a fault of the build.
func load(name string) *redis.Script {
	text := source("prelude")
	switch name {
	case "dead", "delete_dead", "redrive":
		text += source("letters")
	case "gate_exchange", "gate_beat", "gate_guard", "gate_release", "gate_repair", "gate_remove":
		text += source("gate_turns")
	case "beat_look", "beat_fire":
		text += source("beat_lock")
	}
	if strings.HasPrefix(name, "queue_") {
		text += source("queue")
	}
	switch name {
	case "queue_exchange", "queue_letters", "queue_redrive", "queue_discard", "queue_heal":
		text += source("queue_dead")
	}
	return redis.NewScript(text + source(name))
}

// bare is a script without the prelude and its own comments. It is sent as a whole
// with each call, so it has to be short.
func bare(name string) string {
	var code strings.Builder
	for line := range strings.Lines(source(name)) {
		if !strings.HasPrefix(line, "--") {
			code.WriteString(line)
		}
	}
	return strings.TrimSpace(code.String())
}

// keyed is a script whose answer is kept under an idempotency key.
func keyed(name string) *redis.Script {
	return redis.NewScript(source("prelude") + "local function work()\n" + source(name) + "end\n" + source("keyed"))
}

// once is the script that fires entries, for one of them under a mark.
func once(name string) *redis.Script {
	return redis.NewScript(source("prelude") + source("beat_lock") + "local function work()\n" + source(name) + "end\n" + source("beat_once"))
}

func source(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redisops: %v", err))
	}
	return string(text)
}

// runner runs scripts on one Redis.
type runner struct{ rdb redis.UniversalClient }

// run runs a script by its hash, or as a whole where Redis does not know it;
// either way it is one script, never its commands one by one.
func (s *Timers) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	var reply any
	err := s.again(ctx, func() (err error) {
		reply, err = s.try(ctx, script, keys, args...)
		return err
	})
	return reply, err
}

// try is run without another try.
func (s runner) try(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	reply, err := script.Run(ctx, s.rdb, keys, args...).Result()
	return reply, wrap(ctx, keys, s.moved(ctx, err))
}

// runText runs a script that answers one string.
func (s *Timers) runText(ctx context.Context, script *redis.Script, keys []string, args ...any) (string, error) {
	return asText(s.run(ctx, script, keys, args...))
}

func asText(reply any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, ok := reply.(string)
	if !ok {
		return "", fmt.Errorf("%w: %T, want a string", errReply, reply)
	}
	return text, nil
}

// runList runs a script that answers a list of at least n values.
func (s *Timers) runList(ctx context.Context, n int, script *redis.Script, keys []string, args ...any) ([]any, error) {
	reply, err := s.run(ctx, script, keys, args...)
	return asList(n, reply, err)
}

func asList(n int, reply any, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok || len(list) < n {
		return nil, fmt.Errorf("%w: %T, want a list of at least %d", errReply, reply, n)
	}
	return list, nil
}

// texts asserts that all values are strings.
func texts(list []any) ([]string, error) {
	out := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%w: %T in a list, want a string", errReply, v)
		}
		out[i] = text
	}
	return out, nil
}
