package redisops

import "errors"

var (
	// ErrNotFound says that there is no such timer.
	ErrNotFound = errors.New("timer not found")

	// ErrInvalid is wrapped by errors about an argument; they name it and its
	// bound. Nothing was written.
	ErrInvalid = errors.New("invalid argument")

	// ErrWrongType says that a key holds a value of another type; the error
	// names both. Nothing was written.
	ErrWrongType = errors.New("wrong type of key")

	// ErrMemoryFull says that Redis refused to write because it has reached
	// maxmemory. Nothing was written.
	ErrMemoryFull = errors.New("redis memory is full")

	// ErrChannelDenied says that the user of the connection has no right to a
	// channel. Pollers go on by polling; events cannot be watched.
	ErrChannelDenied = errors.New("no right to the channel")

	// ErrUnsupported says that the server cannot keep timers: it is too old, or
	// a Cluster that would spread a topic over several slots.
	ErrUnsupported = errors.New("redis server not usable")

	// ErrKeyUsed says that an idempotency key was used for another call within
	// the last 24 hours. Nothing was written.
	ErrKeyUsed = errors.New("the idempotency key was used for another call")

	// ErrDenied says that Redis did not let the user of the connection do it:
	// wrong credentials, or no right to a command, a key or a channel. Nothing
	// was written.
	ErrDenied = errors.New("redis denies it to this user")

	// ErrTooLarge says that a payload has more bytes than MaxPayload, so it was
	// not read.
	ErrTooLarge = errors.New("payload too large")

	// ErrGateExhausted says that a gate has no more tokens below 2^53, because
	// tokens were lifted too far. Remove it.
	ErrGateExhausted = errors.New("the fencing tokens of the gate are used up: remove it")

	// ErrQueueFull says that a queue holds as many messages as its cap allows;
	// nothing was written.
	ErrQueueFull = errors.New("queue is full")
)
