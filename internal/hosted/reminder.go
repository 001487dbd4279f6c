package hosted

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/shards"
)

// IsReminderTopic reports whether a topic, without the prefix, is one of the topics of a
// *reminder.Reminders, of any node. Package reminder sets this function, which package remote
// calls.
var IsReminderTopic func(reminders any, topic string) bool

// Node is the System that stores and delivers reminders.
type Node struct {
	*opened.Conn

	Actors *actor.ActorSystem
	Name   string // of the System

	Store     *shards.Store
	Schedules *recurring.Schedules

	Code       func(error) messages.Code  // of a failure
	Nack       func(*messages.Nack) error // the verdicts of a handler
	Reject     func(error) error
	Unreadable error
}

// Parts is what the System runs for its reminders.
type Parts struct {
	// Topics, without the prefix, are delivered by Deliver, with these settings.
	Topics        []string
	Deliver       func(context.Context, Reminder) error
	MaxConcurrent int
	MaxAttempts   int
	RetryInitial  time.Duration
	RetryLimit    time.Duration

	// Read reads the requests of the actor; nil: there is no actor.
	Read func(reminders.Request, *actor.PID) (reminders.Call, error)

	// Guard refuses requests that schedule timers on the topics of reminders.
	Guard func(gateway.Timers) gateway.Timers
}

// Reminder is a timer of a reminder that is due.
type Reminder struct {
	Body       *messages.KeptReminder
	Raw        []byte // the encoded body
	Activation time.Time
	Attempt    int
	Schedule   string // of a recurring one, without the prefix; empty: it comes once
	Run        uint64 // of a recurring one, from 1
	Trace      map[string]string
}
