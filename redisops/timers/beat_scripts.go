package timers

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var beatFiles embed.FS

// beatLua is the scripts of this package.
var beatLua = scripts.NewSet(beatFiles)

var (
	beatLookScript   = beatLua.Load("beat_look", "beat_lock")
	beatFireScript   = beatLua.Load("beat_fire", "beat_lock")
	beatOnceScript   = beatLua.Within("beat_once", "beat_fire", "beat_lock")
	beatPutScript    = beatLua.Load("beat_put")
	beatDeleteScript = beatLua.Load("beat_delete")
	beatSendScript   = beatLua.Load("beat_send")
)
