package layout

// Bounds of one script call and of one reply, for all stores.
const (
	BatchEntries = 500     // entries of one script call
	BatchBytes   = 1 << 20 // payload of one script call in bytes, unless a single entry has more

	DefaultPage   = 100
	MaxPage       = 1000
	ScanPage      = 200
	DeadPageBytes = 1 << 20

	DefaultReplyBytes = 256 << 10
)
