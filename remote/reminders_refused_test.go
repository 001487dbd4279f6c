package remote_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// An actor that acknowledges a reminder after its next one was refused gets the present one
// again.
func TestAckAfterForbiddenReminderLosesNone(t *testing.T) {
	t.Parallel()
	for name, forbidden := range map[string]proto.Message{
		"set": &messages.SetReminderRequest{
			Name: "next", Message: packed(t), When: &messages.SetReminderRequest_In{In: durationpb.New(time.Hour)},
		},
		"forget": &messages.ForgetReminderRequest{Name: "next"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := keeper(t, withRights(t, "tests * *"), keeping(t, "a"))
			s := meetAs(t, n, malloryToken)
			address, got := listening(t)
			s.hello(address).welcomed()
			self := actor.NewPID(address, "cart")
			_, err := n.Reminders().Set(t.Context(), reminder.Actor(self), "close", reminder.In(0), wrapperspb.String("x"))
			require.NoError(t, err)
			m, _ := receive(t, got).(*messages.Reminder)
			require.EqualValues(t, 1, m.GetAttempt())
			for _, message := range []proto.Message{forbidden, m.Ack()} {
				b := s.batchOf(s.reminders(), message)
				b.Senders, b.Envelopes[0].Sender = []*actor.PID{self}, 1
				s.batch(b)
			}
			failed, _ := receive(t, got).(*messages.ReminderFailed)
			require.Equal(t, messages.Code_CODE_FORBIDDEN, failed.GetError().GetCode())
			require.Equal(t, "next", failed.GetName())
			again, _ := receive(t, got).(*messages.Reminder)
			require.Greater(t, again.GetAttempt(), m.GetAttempt())
		})
	}
}

// No message without a sender ends the stream, which all actors of a process share.
func TestMessagesWithoutSenderEndNothing(t *testing.T) {
	t.Parallel()
	cfg := withRights(t, "tests * *")
	for _, of := range []wakebell.Config{keeping(t, "a"), {}} {
		n := &node{log: &lines{}, topic: wakebell.NewTopic[string](redistest.Name(t))}
		n.conn.Logger = slog.New(slog.NewTextHandler(n.log, nil))
		n.start(t, cfg, of)
		for _, token := range []string{secret, malloryToken} {
			s := meetAs(t, n, token)
			address, got := listening(t)
			s.hello(address).welcomed()
			for to, kinds := range map[string][]string{
				s.gateway():   slices.Concat(wire.Requests, wire.Subscribing, wire.Turning),
				s.reminders(): slices.Concat(wire.Reminding, wire.Reminded),
			} {
				for _, kind := range kinds {
					known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(kind))
					require.NoError(t, err)
					s.batch(s.batchOf(to, known.New().Interface()))
				}
			}
			s.ask(actor.NewPID(address, "a"), &messages.GetTopicStatsRequest{Topic: "x"})
			require.NotNil(t, receive(t, got))
		}
		require.Empty(t, n.log.with("panicked"))
	}
}

func packed(t testing.TB) *anypb.Any {
	t.Helper()
	what, err := anypb.New(wrapperspb.String("next"))
	require.NoError(t, err)
	return what
}

func (s *stranger) reminders() string {
	return s.gateway()[:len(s.gateway())-len("gateway")] + "reminders"
}
