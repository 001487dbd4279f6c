package layout

// Bounds of one script call and of one reply, for all stores.
const (
	BatchEntries = 500 // entries of one script call
	// KeyedEntries are the entries of one script call of which each may have a key of its own,
	// so that it costs more: 200 block Redis for less than 10 ms at the largest limits by key.
	KeyedEntries = 200
	BatchBytes   = 1 << 20 // payload of one script call in bytes, unless a single entry has more

	DefaultPage   = 100
	MaxPage       = 1000
	ScanPage      = 200
	DeadPageBytes = 1 << 20

	DefaultReplyBytes = 256 << 10
)

// Excessive reports whether so many of entries lack their counterparts that data was lost.
// Up to 100, or 1 %, are remains of ended timers. It is the rule of lua/heal.lua, too.
func Excessive(n, of int64) bool { return n > 100 && n*100 > of }
