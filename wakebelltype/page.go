package wakebelltype

// Page selects a part of a listing; the zero value selects all of it.
type Page struct {
	// After continues a listing after an item: it is the Cursor of that item, or,
	// in a listing of names, the name. Empty: from the beginning. A cursor is
	// opaque, belongs to the listing that it is from, and does not expire.
	After string
	// Limit is the largest number of items; 0 means all.
	Limit int
}
