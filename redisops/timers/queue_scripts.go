package timers

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var queueFiles embed.FS

// queueLua is the scripts of this package.
var queueLua = scripts.NewSet(queueFiles)

var (
	queueExchangeScript = queueLua.Load("queue_exchange", "queue", "queue_dead")
	queuePublishScript  = queueLua.Load("queue_publish", "queue")
	queueLettersScript  = queueLua.Load("queue_letters", "queue", "queue_dead")
	queueRedriveScript  = queueLua.Load("queue_redrive", "queue", "queue_dead")
	queueDiscardScript  = queueLua.Load("queue_discard", "queue", "queue_dead")
	queueHealScript     = queueLua.Load("queue_heal", "queue", "queue_dead")
	queuePurgeScript    = queueLua.Load("queue_purge", "queue")
	queueStatsScript    = queueLua.Load("queue_stats", "queue")
)
