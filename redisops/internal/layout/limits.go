package layout

// Bounds of one script call and of one reply, for all stores.
const (
	BatchEntries = 500 // entries of one script call
	// CostlyEntries are the entries of one script call that cost more, because each may have a
	// key of its own, or a mark: 200 block Redis for less than 10 ms at the largest limits by key.
	CostlyEntries = 200
	// DroppingEntries are the messages of one script call that deletes as many, and as many
	// again of those beyond the cap.
	DroppingEntries = 250
	BatchBytes      = 1 << 20 // payload of one script call in bytes, unless a single entry has more

	DefaultPage   = 100
	MaxPage       = 1000
	ScanPage      = 200
	DeadPageBytes = 1 << 20

	DefaultReplyBytes = 256 << 10
)

// Excessive reports whether so many of entries lack their counterparts that data was lost.
// Up to 100, or 1 %, are remains of ended timers. It is the rule of lua/heal.lua, too.
func Excessive(n, of int64) bool { return n > 100 && n*100 > of }
