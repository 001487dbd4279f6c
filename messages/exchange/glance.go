package exchange

import "time"

// Glance is what a look at a source tells that claims nothing and changes
// nothing.
type Glance struct {
	// Now is the source's clock; zero where there was no need to ask it.
	Now time.Time

	// Next is as in a Reply.
	Next time.Duration
}
