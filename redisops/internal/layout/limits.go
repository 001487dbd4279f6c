package layout

// The bounds of one script call and of one reply that all stores keep.
const (
	BatchEntries = 500     // entries of one script call
	BatchBytes   = 1 << 20 // payload of one script call, unless one entry alone has more

	DefaultPage   = 100
	MaxPage       = 1000
	ScanPage      = 200
	DeadPageBytes = 1 << 20

	DefaultReplyBytes = 256 << 10
)
