package wakebelltype

import "errors"

// Errors of the stores, and of nodes that serve them. Package wakebell and the packages of
// concepts export them too.
var (
	// ErrNotFound reports that what a call names does not exist: a timer, a dead
	// letter or, wrapped by recurring.ErrNoSchedule, a recurring schedule.
	ErrNotFound = errors.New("timer not found")

	// ErrInvalid is wrapped by errors about an argument. They name the argument and
	// its bound. Nothing was written.
	ErrInvalid = errors.New("invalid argument")

	// ErrWrongType reports that a key holds a value of another type. The error
	// names both types. Nothing was written.
	ErrWrongType = errors.New("wrong type of key")

	// ErrMemoryFull reports that Redis refused to write because it has reached
	// maxmemory. Nothing was written.
	ErrMemoryFull = errors.New("redis memory is full")

	// ErrChannelDenied reports that the connection's user has no right to a
	// channel. Pollers continue by polling; events cannot be watched.
	ErrChannelDenied = errors.New("no right to the channel")

	// ErrUnsupported reports that the server cannot store timers: its version is
	// too old, or it is a Cluster that would spread a topic over several slots.
	ErrUnsupported = errors.New("redis server not usable")

	// ErrKeyUsed reports that an idempotency key was used for another call within
	// the last 24 hours. Nothing was written.
	ErrKeyUsed = errors.New("the idempotency key was used for another call")

	// ErrDenied reports that Redis refused the connection's user: its credentials
	// are wrong, or it has no right to a command, a key or a channel. Nothing was
	// written.
	ErrDenied = errors.New("redis denies it to this user")

	// ErrTooLarge reports that a payload has more bytes than may be read. It was not
	// read.
	ErrTooLarge = errors.New("payload too large")

	// ErrGateExhausted reports that a gate has no fencing tokens left below 2^53,
	// because its tokens were raised too far. Remove the gate.
	ErrGateExhausted = errors.New("the fencing tokens of the gate are used up: remove it")

	// ErrQueueFull reports that a queue holds as many messages as its cap allows.
	// Nothing was written.
	ErrQueueFull = errors.New("queue is full")
)
