package peer

import (
	"fmt"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
)

const (
	// retryAfter is the time after which a request without an answer is sent again:
	// the link or the node may have failed.
	retryAfter = 3 * time.Second
	// sendClock is how often the subscriber sends its clock.
	sendClock = time.Minute
)

// subscriber handles the timers of a topic.
type subscriber struct {
	*program
	began      time.Time
	subscribed bool
}

// Messages that the actors send to themselves.
type (
	awake struct{}
	again struct{}
	tick  struct{}
)

func (s *subscriber) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.subscribe(c)
		after(c, sendClock, tick{})
	case *messages.SubscribeResponse:
		s.subscribed = true
		s.say("subscribed")
	case *messages.Leases:
		s.handle(c, m)
	case *actor.Terminated: // the link to the node failed, or its gateway ended
		s.subscribed = false
		s.say("parted")
		after(c, time.Second, again{})
	case again:
		if !s.subscribed {
			s.subscribe(c)
		}
	case tick:
		c.Request(s.gateway, &messages.Verdicts{Topic: s.Topic, Subscriber: s.Name, Clock: s.clock()})
		after(c, sendClock, tick{})
	case *messages.Error:
		s.say("error " + m.GetMessage())
	}
}

// subscribe requests leases, and watches the link to the node.
func (s *subscriber) subscribe(c actor.Context) {
	c.Watch(s.gateway)
	c.Request(s.gateway, &messages.SubscribeRequest{Topic: s.Topic, Subscriber: s.Name, Credits: 100, Clock: s.clock()})
	after(c, retryAfter, again{})
}

func (s *subscriber) clock() *durationpb.Duration { return durationpb.New(time.Since(s.began)) }

// handle handles the leases that have not expired.
func (s *subscriber) handle(c actor.Context, m *messages.Leases) {
	sent := s.began.Add(m.GetClock().AsDuration())
	verdicts := &messages.Verdicts{Topic: s.Topic, Subscriber: s.Name, Clock: s.clock()}
	for _, l := range m.GetLeases() {
		if time.Since(sent) >= l.GetTtl().AsDuration() {
			continue // it will be delivered again
		}
		s.say("handled " + l.GetId())
		verdicts.Verdicts = append(verdicts.Verdicts, &messages.Verdict{Id: l.GetId(), Kind: &messages.Verdict_Ack{Ack: l.Ack()}})
	}
	c.Request(s.gateway, verdicts)
}

// scheduler runs commands: "schedule PREFIX COUNT" and "get ID COUNT".
type scheduler struct {
	*program
	open map[uint64]asked // requests without an answer
	next uint64
	left map[string]int // of each command
}

type asked struct {
	message proto.Message
	command string
}

func (s *scheduler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.left = map[string]int{}
		after(c, retryAfter, again{})
	case []string:
		s.command(c, m)
	case messages.Answer:
		s.answered(m)
	case again:
		for _, a := range s.open { // with the same id and request number, so it is done once
			c.Request(s.gateway, a.message)
		}
		after(c, retryAfter, again{})
	}
}

func (s *scheduler) command(c actor.Context, words []string) {
	kind, id := words[0], words[1]
	count, err := strconv.Atoi(words[2])
	if err != nil {
		panic(err)
	}
	command := fmt.Sprint(kind, " ", id, " ", count)
	s.left[command] = count
	for i := range count {
		s.next++
		a := asked{&messages.GetTimerRequest{Request: s.next, Topic: s.Topic, Id: id}, command}
		if kind == "schedule" {
			id := fmt.Sprint(id, "-", i)
			a.message = &messages.ScheduleRequest{
				Request: s.next, Topic: s.Topic, Id: id, Key: id, Body: []byte(`"x"`), ContentType: "application/json",
				When: &messages.ScheduleRequest_In{In: durationpb.New(0)},
			}
		}
		s.open[s.next] = a
		c.Request(s.gateway, a.message)
	}
}

func (s *scheduler) answered(m messages.Answer) {
	a, ok := s.open[m.GetRequest()]
	if !ok {
		return
	}
	if fault, failed := m.(*messages.Error); failed {
		s.say("error " + fault.GetMessage()) // the request is sent again
		return
	}
	delete(s.open, m.GetRequest())
	if s.left[a.command]--; s.left[a.command] == 0 {
		s.say("done " + a.command)
	}
}

// after sends an actor a message to itself after a delay.
func after(c actor.Context, d time.Duration, message any) {
	self, root := c.Self(), c.ActorSystem().Root
	time.AfterFunc(d, func() { root.Send(self, message) })
}
