package progress

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("progress", luaFiles)

var (
	checkpointScript = lua.Load("checkpoint")
	keepScript       = lua.Load("keep")
	withdrawScript   = lua.Load("withdraw")
)
