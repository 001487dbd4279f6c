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
	lookScript   = lua.Load("look")
	fireScript   = lua.Load("fire")
	onceScript   = lua.Within("once", "fire", "")
	putScript    = lua.Load("put")
	deleteScript = lua.Load("delete")
	sendScript   = lua.Load("send")
)
