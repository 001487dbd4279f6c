package redisops

import "embed"

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = newSet(luaFiles)

var (
	exchangeScript      = lua.load("exchange")
	scheduleScript      = lua.load("schedule")
	cancelScript        = lua.load("cancel")
	cancelAllScript     = lua.load("cancel_all")
	getScript           = lua.load("get")
	rescheduleScript    = lua.load("reschedule")
	runNowScript        = lua.load("run_now")
	listScript          = lua.load("list")
	glanceScript        = lua.load("glance")
	countScript         = lua.load("count")
	deadScript          = lua.load("dead", "letters")
	deleteDeadScript    = lua.load("delete_dead", "letters")
	redriveScript       = lua.load("redrive", "letters")
	healScript          = lua.load("heal")
	controlScript       = lua.load("control")
	statsScript         = lua.load("stats")
	lastDeadScript      = lua.load("last_dead")
	apartScript         = lua.bare("apart")
	keyedScheduleScript = lua.within("keyed", "schedule")
	keyedCancelScript   = lua.within("keyed", "cancel")
)

var (
	bareScript = lua.load("bare")
	tryScript  = lua.load("try")
)

var (
	queueExchangeScript = lua.load("queue_exchange", "queue", "queue_dead")
	queuePublishScript  = lua.load("queue_publish", "queue")
	queueLettersScript  = lua.load("queue_letters", "queue", "queue_dead")
	queueRedriveScript  = lua.load("queue_redrive", "queue", "queue_dead")
	queueDiscardScript  = lua.load("queue_discard", "queue", "queue_dead")
	queueHealScript     = lua.load("queue_heal", "queue", "queue_dead")
	queuePurgeScript    = lua.load("queue_purge", "queue")
	queueStatsScript    = lua.load("queue_stats", "queue")
)

var (
	gateExchangeScript = lua.load("gate_exchange", "gate_turns")
	gateBeatScript     = lua.load("gate_beat", "gate_turns")
	gatePlacesScript   = lua.load("gate_places")
	gateShowScript     = lua.load("gate_show")
	gateReleaseScript  = lua.load("gate_release", "gate_turns")
	gateGuardScript    = lua.load("gate_guard", "gate_turns")
	gateRepairScript   = lua.load("gate_repair", "gate_turns")
	gateRemoveScript   = lua.load("gate_remove", "gate_turns")
)

var (
	beatLookScript   = lua.load("beat_look", "beat_lock")
	beatFireScript   = lua.load("beat_fire", "beat_lock")
	beatOnceScript   = lua.within("beat_once", "beat_fire", "beat_lock")
	beatPutScript    = lua.load("beat_put")
	beatDeleteScript = lua.load("beat_delete")
	beatSendScript   = lua.load("beat_send")
)
