// Package records stores what nodes record of a topic or a queue: counts by minute and
// day, and the history of attempts. The store of topics and that of queues name the keys.
package records

import (
	"embed"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Store has the records of one topic or queue.
type Store struct {
	scripts.Runner
	Name            string // of the topic or queue, for errors
	Counts, History string // keys
}

//go:embed lua/*.lua
var luaFiles embed.FS

// lua is the scripts of this package.
var lua = scripts.NewSet("records", luaFiles)

var (
	countsScript  = lua.Load("counts")
	historyScript = lua.Load("history")
)
