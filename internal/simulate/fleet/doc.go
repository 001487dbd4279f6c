// Package fleet simulates whole Systems: nodes with their actors, the server of package remote,
// its clients over real gRPC and HTTP, and the relays of an outbox, in one process and in virtual
// time (testing/synctest). Package simulate has no actors; it decides everything in one goroutine.
//
// # It is not exact
//
// The Go scheduler decides in which order goroutines run. A seed gives the same plan, with the
// same operations at the same instants, and not the same trace: a plan that breaks a promise may
// hold it in the next run. What a broken plan prints is its seed, its operations and the trace of
// that run. With -fleet.shrink N operations and faults are dropped for as long as the plan breaks the
// same promise in one of N runs (shrink.go), and at most -fleet.cuts plans are tried; each smaller one is
// printed at once with the flags that run it again: -fleet.keep has the numbers of its operations.
//
// # Processes
//
// A fleet has up to three nodes and three clients, each with a host in a network in memory
// (network.go), because sockets do not work in virtual time. The network is below gRPC and
// net/http: frames, flow control, pings, sessions, subscriptions and turns are those of production
// at both ends. Redis is the embedded server. The path to it has no delay and is never silent,
// because go-redis holds mutexes while it waits for the server, and virtual time stands still while
// a goroutine waits for a mutex. It is away, loses requests and replies, or is cut off from one
// node instead. It keeps its data, but in the plans of the seeds with a remainder of 3 by 4: there it
// loses what it writes for up to three seconds (losses.go).
//
// A lock of the product that is held while it waits stops the virtual time for the same reason: such a
// run hangs, and the goroutines that the time limit of the test prints show the lock.
//
// # Plans
//
// Draw draws a plan from a table of operations by weight (plan.go): calls over sessions, HTTP, the
// gateway and the Client of a node; turns at gates, also over HTTP; reminders; messages; three timers of
// a key at once; timers that wait for others; recurring schedules; other numbers of shards; rows of an
// outbox. Beside the operations subscribers and consumers over HTTP handle what there is (client.go,
// pull.go). Some operations aim at moments that are rare (aimed.go); plans of the seeds with a remainder
// of 1 by 4 end with some that have the fleet for themselves. During two thirds of the others there
// are faults: links that are cut, late, or silent in one direction or both; nodes and clients that
// crash, drain and come back; Redis. Then all rests, and everything has to be done within ten minutes.
//
// # Judge
//
// The judge (judge*.go) checks promises of docs/guarantees.md, docs/remote.md, docs/gates.md,
// docs/flow.md and docs/reminders.md, when all processes have ended:
//
//   - never early; at least once; a refused call has no effect; a repeated call with an idempotency
//     key or a draft that is published again makes one timer or message, as a row does
//   - the context of a handler ends before another handler of its timer begins, and one that goes on
//     when its subscription has ended keeps its lease until this expires
//   - a timer is not delivered again after an ack, unless there was a fault
//   - a timer that a call found pending and cancelled or replaced does not begin
//   - with PerKey(1), and with KeyRun at odd seeds, one at a time and in order by key
//   - a lease over HTTP lasts as long as its answer says, and its verdict is refused once another
//     consumer has the timer
//   - each instant of a recurring schedule becomes one timer, none is missed, and none after its
//     deletion fires; a run in addition is one; where Overlap says so, no run begins while the timer of
//     an earlier one exists, and of the instants that come meanwhile none fires, or the last one later
//   - a timer that waits for others begins when these have ended, or its instant has come, and how
//     they have ended is true
//   - one turn at a time, with tokens that grow, and a guard that accepts no older one
//   - a reminder reaches its actor until it is acknowledged, and one that was replaced or removed
//     does not
//   - every call and every wait for a turn ends
//
// It excuses repetitions for as long as there is a fault and for ten seconds after it, and says
// nothing about an id after a call whose outcome is unknown. What was written while Redis lost it is
// unknown too; what was confirmed before has to be delivered.
//
// Leases and verdicts of batches, checkpoints and results, FairKeys, limits of rates, moves to another
// Redis, several prefixes, Celery tasks and changes of options while a node runs are not in fleets.
package fleet
