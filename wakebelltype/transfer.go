package wakebelltype

// Exported is how far an export of a topic is.
type Exported struct {
	Timers int64 `json:"timers"`
	Dead   int64 `json:"dead"`  // dead letters
	Marks  int64 `json:"marks"` // of timers with Once
	Total  int64 `json:"total"` // timers and dead letters when the export began
	Done   bool  `json:"done"`
}

// ImportOptions are how an exported topic is imported. The zero value imports it under its
// own name and leaves alone what exists.
type ImportOptions struct {
	// Topic is the topic to import to; empty: the name in the file.
	Topic string
	// Replace replaces timers whose id exists, also while a handler has them. Without it
	// they stay as they are.
	Replace bool
	// DryRun checks all lines and counts what an import would do. It changes nothing.
	DryRun bool
	// FromLine is the first line to import, after the Line of an import that was
	// interrupted; 0 or 1: all. The lines before it are checked.
	FromLine int64
}

// Imported is how far an import of a topic is. With DryRun, it says what would happen.
type Imported struct {
	Topic string `json:"topic"`
	// Line is the last line of which, with all before it, everything is stored.
	Line int64 `json:"line"`

	Stored   int64 `json:"stored"`   // timers whose id did not exist
	Replaced int64 `json:"replaced"` // timers whose id existed, with Replace
	Existed  int64 `json:"existed"`  // timers and dead letters that existed and stay as they are
	Unusable int64 `json:"unusable"` // timers that no node can handle, which are left out

	Dead  int64 `json:"dead"`  // dead letters
	Marks int64 `json:"marks"` // of timers with Once
	Total int64 `json:"total"` // timers and dead letters that the first line announces
	Done  bool  `json:"done"`
}

// MoveOptions are how a topic is moved to another Redis.
type MoveOptions struct {
	// All also moves timers that are due or due within 10 s. Without it, the nodes of the
	// source handle them, except those with a key, which move with the others of their key.
	All bool

	// Force moves the topic although a join has its timer or parts on it, or a recurring
	// schedule with Overlap runs there: a part that is moved counts as cancelled, the timer of
	// a join is due at its instant and has no parts, and a last run that is moved counts as
	// gone.
	Force bool
}

// Moving is how far the move of a topic to another Redis is.
type Moving struct {
	Moved int64 `json:"moved"` // timers, dead letters and entries of the history, since the call
	Left  int64 `json:"left"`  // timers that are in the source
	Done  bool  `json:"done"`
}
