package timers

// The bounds of one script call and of one reply that all stores keep.
const (
	batchEntries = 500     // entries of one script call
	batchBytes   = 1 << 20 // payload of one script call, unless one entry alone has more

	defaultPage   = 100
	maxPage       = 1000
	scanPage      = 200
	deadPageBytes = 1 << 20

	defaultReplyBytes = 256 << 10
)
