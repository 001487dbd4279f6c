package wakebell

import "time"

// Observed has told told of every ticket that is taken: its number, and when
// it was asked for and answered.
func (c GatesConfig) Observed(told func(ticket uint64, asked, answered time.Time)) GatesConfig {
	c.observe = func(t ticketTaken) { told(uint64(t.Ticket), t.Asked, t.Answered) }
	return c
}
