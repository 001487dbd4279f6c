package wire

import "github.com/wakebell/wakebell/wakebelltype"

// Paged is implemented by requests for a part of a listing.
type Paged interface {
	GetAfter() string
	GetLimit() uint32
}

// PageOf returns the part of a listing that a request asks for.
func PageOf(m Paged) wakebelltype.Page {
	return wakebelltype.Page{After: m.GetAfter(), Limit: int(m.GetLimit())}
}
