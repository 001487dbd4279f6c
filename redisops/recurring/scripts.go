package recurring

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("recurring", luaFiles)

var (
	lookScript   = lua.Load("look", "lock")
	fireScript   = lua.Fenced("fire", "lock", "tally")
	onceScript   = lua.FencedWithin("once", "fire", "lock", "tally")
	putScript    = lua.Load("put")
	deleteScript = lua.Load("delete")
	sendScript   = lua.Fenced("send", "tally")
)
