package wakebelltype

import "time"

// QueueKeys determines the keys of a queue; see docs/keys.md.
type QueueKeys struct {
	Name string // 1 to 512 bytes, without NUL and without the separator

	// Separator separates the name from the purpose of a key; empty means "::".
	Separator string
	// DeadLetters is the key of the list of dead letters; empty means the name, the
	// separator and "dlq".
	DeadLetters string
}

// QueueName is a queue of a listing.
type QueueName struct {
	Keys   QueueKeys
	Cursor string // continues the listing after this queue
}

// QueueRemoval is the result of removing a queue from the list of queues.
type QueueRemoval struct {
	Existed bool // the queue was listed
	// Use is what uses the queue, which therefore stays: a key of it, or its nodes.
	// Empty: nothing uses it.
	Use string
}

// QueuePublished is the result of publishing a message.
type QueuePublished struct {
	ID    string `json:"id"`    // id of the message; if not Fresh, that of the earlier message, or empty if unknown
	Fresh bool   `json:"fresh"` // the message was published; false: an earlier one has its deduplication key
}

// QueueStats are the statistics of a queue.
type QueueStats struct {
	Pending    int64 `json:"pending"`    // messages that wait to be claimed
	Processing int64 `json:"processing"` // messages that are leased or wait for their next attempt
	Ended      int64 `json:"ended"`      // messages of Processing whose lease expired; they can be claimed
	Unleased   int64 `json:"unleased"`   // messages of Processing that were delivered at most once, without a lease
	Completed  int64 `json:"completed"`  // payloads kept of handled messages
	Failed     int64 `json:"failed"`     // payloads kept of messages that failed permanently
	Dead       int64 `json:"dead"`       // dead letters

	// Oldest is when the next message to be claimed was published; zero if none
	// waits, or if its id does not contain the instant.
	Oldest time.Time `json:"oldest,omitzero"`
	// Now is Redis's clock.
	Now time.Time `json:"now,omitzero"`
}

// QueueMessage is a message as Redis stores it.
type QueueMessage struct {
	ID         string    `json:"id"` // empty if the message has no envelope
	Payload    []byte    `json:"payload"`
	Fault      string    `json:"fault"`             // why its envelope cannot be read; empty if it can
	Running    bool      `json:"running"`           // leased, or waiting for its next attempt
	Deliveries int       `json:"deliveries"`        // so far
	Deadline   time.Time `json:"deadline,omitzero"` // if Running: when the lease expires or the next attempt is due

	// Cursor continues a listing after this message. Only listings set it.
	Cursor string `json:"cursor"`
}

// QueueDeadLetter is a dead letter of a queue.
type QueueDeadLetter struct {
	// Entry identifies it; dead letters with the same payload that Python wrote share
	// one Entry.
	Entry   string `json:"entry"`
	Payload []byte `json:"payload"`

	// The fields below are zero for a dead letter that Python wrote.

	ID         string    `json:"id"` // of the message
	Reason     string    `json:"reason"`
	Deliveries int       `json:"deliveries"`
	At         time.Time `json:"at,omitzero"` // when it was dead-lettered

	// Cursor continues a listing after this dead letter. Only listings set it.
	Cursor string `json:"cursor"`
}

// QueueRedriveOutcome is the outcome of queue.Client.RedriveDeadLetter.
type QueueRedriveOutcome uint8

const (
	// QueueRedriveSucceeded means that the dead letter is a message again, with a
	// new id.
	QueueRedriveSucceeded QueueRedriveOutcome = iota + 1
	// QueueRedriveDuplicate means that the dead letter stays, because another
	// message has its deduplication key.
	QueueRedriveDuplicate
	// QueueRedriveAbsent means that the dead letter did not exist.
	QueueRedriveAbsent
)
