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

// QueuePublished is the result of publishing a message.
type QueuePublished struct {
	ID    string // id of the message; of the earlier one if not Fresh, empty if unknown
	Fresh bool
}

// QueueStats are the statistics of a queue.
type QueueStats struct {
	Pending    int64 // waiting to be claimed
	Processing int64 // leased, or waiting for their next attempt
	Ended      int64 // of Processing: lease expired, can be claimed
	Unleased   int64 // of Processing: delivered at most once, without a lease
	Completed  int64 // stored payloads of handled messages
	Failed     int64 // stored payloads of messages that failed permanently
	Dead       int64 // dead letters

	// Oldest is when the next message to be claimed was published; zero if none
	// waits, or if its id does not contain the instant.
	Oldest time.Time
	// Now is Redis's clock.
	Now time.Time
}

// QueueMessage is a message as Redis stores it.
type QueueMessage struct {
	ID         string // empty if the message has no envelope
	Payload    []byte
	Fault      string // why its envelope cannot be read
	Running    bool   // leased, or waiting for its next attempt
	Deliveries int    // so far
	Deadline   time.Time

	// Cursor continues a listing after this message. Only listings set it.
	Cursor string
}

// QueueDeadLetter is a dead letter of a queue.
type QueueDeadLetter struct {
	// Entry identifies it; dead letters with the same payload that Python wrote share
	// one Entry.
	Entry   string
	Payload []byte

	// The fields below are zero for a dead letter that Python wrote.

	ID         string // of the message
	Reason     string
	Deliveries int
	At         time.Time // when it was dead-lettered

	// Cursor continues a listing after this dead letter. Only listings set it.
	Cursor string
}

// QueueRedriveOutcome is the outcome of RedriveLetter.
type QueueRedriveOutcome uint8

const (
	// QueueRedriveSucceeded means that the dead letter is a message again, with a new id.
	QueueRedriveSucceeded QueueRedriveOutcome = iota + 1
	// QueueRedriveDuplicate means that the dead letter stays, because another message has
	// its deduplication key.
	QueueRedriveDuplicate
	// QueueRedriveAbsent means that the dead letter did not exist.
	QueueRedriveAbsent
)
