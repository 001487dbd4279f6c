package web

import (
	"net/http"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
)

// route is a method and a path, and the messages that they stand for. The table of
// routes is all that the handler and the OpenAPI document know of the API.
type route struct {
	method, pattern, summary string
	in                       proto.Message // what path, query and body fill
	out                      proto.Message // what is answered
	// request returns the request for a filled message; nil: it is that message.
	request func(in proto.Message, path map[string]string) proto.Message
	// undo returns requests that give back what an answer hands out, if it could not be
	// sent; nil: it hands out nothing.
	undo func(request, answer proto.Message) []proto.Message

	segments []segment // of pattern
}

const (
	timersPath    = "/v1/topics/{topic}/timers"
	timerPath     = timersPath + "/{id}"
	leasesPath    = "/v1/topics/{topic}/leases"
	joinPath      = timerPath + "/join"
	schedulesPath = "/v1/schedules"
	schedulePath  = schedulesPath + "/{name}"
	turnsPath     = "/v1/gates/{gate}/turns"
)

var routes = tableOf(append([]route{
	{method: http.MethodPost, pattern: timersPath, summary: "Schedule a timer", in: &messages.ScheduleRequest{}, out: &messages.ScheduleResponse{}},
	{method: http.MethodPost, pattern: timersPath + ":batch", summary: "Schedule up to 1,000 timers", in: &messages.ScheduleBatchRequest{}, out: &messages.ScheduleBatchResponse{}, request: batch},
	{method: http.MethodPost, pattern: timersPath + ":cancel", summary: "Cancel up to 1,000 timers", in: &messages.CancelRequest{}, out: &messages.CancelResponse{}},
	{method: http.MethodGet, pattern: timersPath, summary: "List the timers of a topic", in: &messages.ListTimersRequest{}, out: &messages.ListTimersResponse{}},
	{method: http.MethodGet, pattern: timerPath, summary: "Read a timer with its content", in: &messages.GetTimerRequest{}, out: &messages.GetTimerResponse{}},
	{method: http.MethodPatch, pattern: timerPath, summary: "Give a timer a new instant", in: &messages.RescheduleRequest{}, out: &messages.RescheduleResponse{}},
	{method: http.MethodDelete, pattern: timerPath, summary: "Cancel a timer", in: &messages.CancelRequest{}, out: &messages.CancelResponse{}, request: cancelOne},
	{method: http.MethodPost, pattern: timerPath + ":run", summary: "Make a timer due now", in: &messages.RunNowRequest{}, out: &messages.RunNowResponse{}},
	{method: http.MethodGet, pattern: timerPath + "/report", summary: "Read progress and result of a timer, and wait for its end", in: &httpapi.ReportRequest{}, out: &messages.WaitTimerResponse{}},
	{method: http.MethodGet, pattern: joinPath, summary: "Read the state of the join of a timer", in: &messages.GetJoinRequest{}, out: &messages.GetJoinResponse{}},
	{method: http.MethodGet, pattern: joinPath + "/parts", summary: "List the parts of the join of a timer", in: &messages.ListPartsRequest{}, out: &messages.ListPartsResponse{}},
	{method: http.MethodPost, pattern: joinPath + ":add", summary: "Add parts to an open join", in: &messages.AddPartsRequest{}, out: &messages.AddPartsResponse{}},
	{method: http.MethodPost, pattern: joinPath + ":close", summary: "Close a join to further parts", in: &messages.CloseJoinRequest{}, out: &messages.CloseJoinResponse{}},
	{method: http.MethodPost, pattern: joinPath + ":cancel", summary: "Cancel a timer with a join, and the parts that have not ended", in: &messages.CancelJoinRequest{}, out: &messages.CancelJoinResponse{}},
	{method: http.MethodGet, pattern: "/v1/topics/{topic}/stats", summary: "Read the statistics of a topic", in: &messages.GetTopicStatsRequest{}, out: &messages.GetTopicStatsResponse{}},

	{method: http.MethodPost, pattern: "/v1/queues/{name}/messages", summary: "Publish up to 1,000 messages to a queue", in: &messages.PublishRequest{}, out: &messages.PublishResponse{}},

	{method: http.MethodGet, pattern: schedulesPath, summary: "List the recurring schedules", in: &messages.ListRecurringRequest{}, out: &messages.ListRecurringResponse{}},
	{method: http.MethodPut, pattern: schedulePath, summary: "Store a recurring schedule", in: &messages.Recurring{}, out: &messages.PutRecurringResponse{}, request: putOne},
	{method: http.MethodGet, pattern: schedulePath, summary: "Read a recurring schedule", in: &messages.GetRecurringRequest{}, out: &messages.GetRecurringResponse{}},
	{method: http.MethodDelete, pattern: schedulePath, summary: "Delete a recurring schedule", in: &messages.DeleteRecurringRequest{}, out: &messages.DeleteRecurringResponse{}},
	{method: http.MethodGet, pattern: schedulePath + "/preview", summary: "Read the next instants of a recurring schedule", in: &messages.PreviewRecurringRequest{}, out: &messages.PreviewRecurringResponse{}},
	{method: http.MethodPost, pattern: schedulePath + ":run", summary: "Fire a recurring schedule now, in addition to its instants", in: &messages.RunRecurringRequest{}, out: &messages.RunRecurringResponse{}},
	{method: http.MethodPost, pattern: schedulePath + ":enable", summary: "Pause or resume a recurring schedule", in: &messages.EnableRecurringRequest{}, out: &messages.EnableRecurringResponse{}},

	{method: http.MethodPost, pattern: turnsPath, summary: "Wait for the turn at a gate", in: &httpapi.AcquireRequest{}, out: &httpapi.AcquireResponse{}, undo: giveBackTurn},
	{method: http.MethodPost, pattern: turnsPath + "/{token}:extend", summary: "Extend a turn by its ttl", in: &httpapi.ExtendTurnRequest{}, out: &httpapi.ExtendTurnResponse{}},
	{method: http.MethodPost, pattern: turnsPath + "/{token}:release", summary: "Give a turn back", in: &httpapi.ReleaseTurnRequest{}, out: &httpapi.ReleaseTurnResponse{}},
	{method: http.MethodPost, pattern: "/v1/gates/{gate}:guard", summary: "Ask whether a fencing token may write a resource", in: &messages.GuardTurnRequest{}, out: &messages.GuardTurnResponse{}},
}, append(append(leaseRoutes(leasesPath, "timers of a topic", nil), []route{
	{method: http.MethodPost, pattern: leasesPath + "/{token}:checkpoint", summary: "Replace the body of a timer, from which a later attempt resumes", in: &httpapi.CheckpointRequest{}, out: &httpapi.KeepResponse{}},
	{method: http.MethodPost, pattern: leasesPath + "/{token}:progress", summary: "Report how far the handling of a timer is", in: &httpapi.ProgressRequest{}, out: &httpapi.KeepResponse{}},
}...),
	leaseRoutes("/v1/queues/{topic}/leases", "messages of a queue", ofQueue)...)...))

// leaseRoutes are the routes of a consumer without a callback.
func leaseRoutes(path, what string, claim func(proto.Message, map[string]string) proto.Message) []route {
	lease := path + "/{token}"
	return []route{
		{method: http.MethodPost, pattern: path + ":claim", summary: "Wait for leases of the " + what, in: &httpapi.ClaimRequest{}, out: &httpapi.ClaimResponse{}, request: claim, undo: giveBackLeases},
		{method: http.MethodPost, pattern: lease + ":ack", summary: "Report that a lease was handled", in: &httpapi.AckRequest{}, out: &httpapi.SettleResponse{}},
		{method: http.MethodPost, pattern: lease + ":nack", summary: "Report that a lease failed, and retry it", in: &httpapi.NackRequest{}, out: &httpapi.SettleResponse{}},
		{method: http.MethodPost, pattern: lease + ":reject", summary: "Report that a lease failed for good", in: &httpapi.RejectRequest{}, out: &httpapi.SettleResponse{}},
		{method: http.MethodPost, pattern: lease + ":release", summary: "Return a lease as if it had not been delivered", in: &httpapi.ReleaseRequest{}, out: &httpapi.SettleResponse{}},
		{method: http.MethodPost, pattern: lease + ":extend", summary: "Extend a lease", in: &httpapi.ExtendRequest{}, out: &httpapi.ExtendResponse{}},
	}
}

func batch(in proto.Message, path map[string]string) proto.Message {
	m, _ := in.(*messages.ScheduleBatchRequest)
	for _, t := range m.GetTimers() {
		t.Topic = path["topic"]
	}
	return m
}

func cancelOne(in proto.Message, path map[string]string) proto.Message {
	m, _ := in.(*messages.CancelRequest)
	m.Ids = []string{path["id"]}
	return m
}

func putOne(in proto.Message, _ map[string]string) proto.Message {
	m, _ := in.(*messages.Recurring)
	return &messages.PutRecurringRequest{Schedules: []*messages.Recurring{m}}
}

func ofQueue(in proto.Message, _ map[string]string) proto.Message {
	m, _ := in.(*httpapi.ClaimRequest)
	m.Queue = true
	return m
}

func giveBackTurn(request, answer proto.Message) []proto.Message {
	m, _ := request.(*httpapi.AcquireRequest)
	turn, _ := answer.(*httpapi.AcquireResponse)
	return []proto.Message{&httpapi.ReleaseTurnRequest{Gate: m.GetGate(), Token: turn.GetToken()}}
}

func giveBackLeases(request, answer proto.Message) (all []proto.Message) {
	m, _ := request.(*httpapi.ClaimRequest)
	claimed, _ := answer.(*httpapi.ClaimResponse)
	for _, l := range claimed.GetLeases() {
		all = append(all, &httpapi.ReleaseRequest{Topic: m.GetTopic(), Token: l.GetToken()})
	}
	return all
}

// hasBody reports whether the route takes a body.
func (r *route) hasBody() bool { return r.method != http.MethodGet && r.method != http.MethodDelete }

// keyField is the idempotency key of a request. That of a timer is timer_key.
const keyField = "key"

// keyed reports whether the header Idempotency-Key applies. Messages of a queue have tails.
func (r *route) keyed() bool {
	_, publishes := r.in.(*messages.PublishRequest)
	return publishes || r.in.ProtoReflect().Descriptor().Fields().ByName(keyField) != nil
}

// shown reports whether a field of a request or answer is in its JSON: not what headers,
// the path and the query have, nor what only other kinds of peers need.
func (r *route) shown(f protoreflect.FieldDescriptor) bool {
	of, name := f.ContainingMessage(), f.Name()
	if of == r.in.ProtoReflect().Descriptor() || of == schedule {
		for _, s := range r.segments {
			if s.variable == string(name) || (r.request != nil && name == "ids" && s.variable == "id") {
				return false
			}
		}
	}
	switch name {
	case "request", "timeout", "encoded", "join_name":
		return false
	case "trace":
		return of.Name() == "ClaimedLease"
	case "key":
		return of.Name() == "QueueMessage" || of.Name() == "Timer"
	case "tail":
		return of.Name() != "QueueMessage"
	case "queue":
		return of.Name() != "PublishRequest" && of.Name() != "ClaimRequest"
	}
	return true
}

var schedule = (&messages.ScheduleRequest{}).ProtoReflect().Descriptor()
