package reminder

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// Recipient is the actor that a reminder is for. Actor and Identity make one.
type Recipient struct {
	// ID is the id of an actor's PID, or with Kind an identity of a cluster.
	ID string
	// Address is the address of the actor; empty: the node that stores the
	// reminder.
	Address string
	// Kind is the kind of the identity; empty: the recipient is an actor.
	Kind string
}

// Actor returns the recipient with this PID: an actor of this process, or of the
// process at its address, which must be connected to this one by package remote.
func Actor(pid *actor.PID) Recipient {
	return Recipient{ID: pid.GetId(), Address: pid.GetAddress()}
}

// Identity returns an identity of a cluster as a recipient, wherever its actor is.
func Identity(kind, identity string) Recipient { return Recipient{Kind: kind, ID: identity} }

// String returns the recipient for messages to people: "cart-17",
// "cart-17 at 10.0.0.5:7070" or "cart 17".
func (r Recipient) String() string {
	switch {
	case r.Kind != "":
		return r.Kind + " " + r.ID
	case r.Address != "":
		return r.ID + " at " + r.Address
	default:
		return r.ID
	}
}

// ErrAutomaticName reports that an actor, or one of its parents, has a name that
// protoactor generated: after a restart another actor has that name. An error that
// wraps it also wraps wakebell.ErrInvalid.
var ErrAutomaticName = errors.New("a generated name, which another actor has after a restart: use SpawnNamed for the actor and its parents")

// Validate reports why a reminder cannot be stored for the recipient.
func (r Recipient) Validate() error {
	switch {
	case r.ID == "":
		return errors.New("the recipient's id is missing")
	case r.Kind != "" && r.Address != "":
		return errors.New("an identity's address is missing")
	case !utf8.ValidString(r.ID), !utf8.ValidString(r.Address), !utf8.ValidString(r.Kind):
		return errors.New("the recipient is not UTF-8")
	case r.Kind == "" && strings.Contains(r.ID, "$"):
		// A generated name begins with it ("$1") or has it after a prefix
		// ("cart$1"). The id of a child begins with that of its parent.
		return fmt.Errorf("actor %q: %w", r.ID, ErrAutomaticName)
	}
	return nil
}

// The first part of an id.
const (
	here     = "actor"
	at       = "at"
	identity = "identity"
)

// reminderID returns the id of a reminder. Its parts are escaped, so that the ids
// of two reminders differ.
func reminderID(to Recipient, name string) string {
	var parts []string
	switch {
	case to.Kind != "":
		parts = []string{identity, to.Kind, to.ID, name}
	case to.Address != "":
		parts = []string{at, to.Address, to.ID, name}
	default:
		parts = []string{here, to.ID, name}
	}
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// parseID is the inverse of reminderID. It returns false for any other id.
func parseID(id string) (to Recipient, name string, ok bool) {
	parts := strings.Split(id, "/")
	for i := range parts {
		part, err := url.PathUnescape(parts[i])
		if err != nil {
			return Recipient{}, "", false
		}
		parts[i] = part
	}
	switch {
	case len(parts) == 3 && parts[0] == here:
		to, name = Recipient{ID: parts[1]}, parts[2]
	case len(parts) == 4 && parts[0] == at:
		to, name = Recipient{Address: parts[1], ID: parts[2]}, parts[3]
	case len(parts) == 4 && parts[0] == identity:
		to, name = Recipient{Kind: parts[1], ID: parts[2]}, parts[3]
	}
	if to.Validate() != nil || name == "" || reminderID(to, name) != id {
		return Recipient{}, "", false
	}
	return to, name, true
}

// bodyOf returns the body of a reminder's timer.
func bodyOf(to Recipient, m *messages.KeptReminder) *messages.KeptReminder {
	m.To = &messages.Recipient{Id: to.ID, Address: to.Address, Kind: to.Kind}
	return m
}

// recipientOf returns the recipient of a stored reminder, or why it has none.
func recipientOf(m *messages.KeptReminder) (Recipient, error) {
	to := Recipient{ID: m.GetTo().GetId(), Address: m.GetTo().GetAddress(), Kind: m.GetTo().GetKind()}
	switch {
	case m.GetName() == "":
		return to, errors.New("the reminder's name is missing")
	case m.GetMessage().MessageName() == "":
		return to, errors.New("the reminder's message is missing")
	}
	return to, to.Validate()
}
