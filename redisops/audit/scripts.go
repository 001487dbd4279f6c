package audit

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("audit", luaFiles)

var recordScript = lua.Load("record")
