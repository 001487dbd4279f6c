package moduleonly

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/shards"
)

// ReminderNode is the System that stores and delivers reminders.
type ReminderNode struct {
	Actors *actor.ActorSystem
	Name   string // of the System
	Prefix string // of topics and schedules
	Limit  int    // of a payload, in bytes
	Edge   *outgoing.Edge

	Payloads *payload.Chain // nil: bodies are stored as they are

	Store     *shards.Store
	Schedules *recurring.Schedules

	Code       func(error) messages.Code  // of a failure
	Nack       func(*messages.Nack) error // the verdicts of a handler
	Reject     func(error) error
	Unreadable error
}

// ReminderParts is what the System runs for its reminders.
type ReminderParts struct {
	// Topics, without the prefix, are delivered by Deliver, with these settings.
	Topics        []string
	Deliver       func(context.Context, ReminderTimer) error
	MaxConcurrent int
	MaxAttempts   int
	RetryInitial  time.Duration
	RetryLimit    time.Duration

	// Read reads the requests of the actor; nil: there is no actor.
	Read func(reminders.Request, *actor.PID) (reminders.Call, error)

	// Guard refuses requests that schedule timers on the topics of reminders.
	Guard func(gateway.Timers) gateway.Timers
}

// ReminderTimer is a timer of a reminder that is due.
type ReminderTimer struct {
	Body       *messages.KeptReminder
	Raw        []byte // the encoded body
	Activation time.Time
	Attempt    int
	Schedule   string // of a recurring one, without the prefix; empty: it comes once
	Run        uint64 // of a recurring one, from 1
	Trace      map[string]string
}

// Reminders makes the *reminder.Reminders of a *reminder.Config, which is nil for
// a System without reminders. It uses the node's store and schedules only when it
// is called later.
var Reminders func(config any, n *ReminderNode) (reminders any, parts ReminderParts)
