// Package faults strikes real nodes and a real Redis on purpose, and accounts
// for every timer afterwards. It is a test harness: `make faults` runs it at
// length, `make test` one round of every scenario.
//
// # A round
//
// A scenario has a redis-server of its own, node processes (the test binary
// under another name, see [NodeMain]) whose handlers do what the bodies of the
// timers say, clients in the harness, and a [Ledger]. Nodes print a line when a
// handler begins, asks for a settlement, learns of it, and ends. When the load
// has ended, the round waits until Redis keeps no timer, ends the nodes, checks
// that no payload, lease record or timeline entry is left, and has the ledger
// judge. All choices come from the seed, the scenario and the number of the
// round; how they meet in time does not.
//
// # What is a violation
//
//   - lost: a timer whose schedule was acknowledged, that nobody replaced or
//     cancelled, and with which no handler was done before it was gone. A dead
//     letter counts as done where a handler had failed.
//   - early: the claim bears an instant of Redis's clock before that of the
//     timer, which is what Redis answered, and counts from the call where the
//     call may have run twice.
//   - repeated without a cause, as below.
//   - stale: a settlement was confirmed to a handler after another one had
//     claimed the timer, or a call had found it running and replaced it.
//   - beside: a handler ran on while the next one of its timer ran, for longer
//     than its process was not run by the machine. Judged where handlers end with
//     their contexts: in the scenario remote.
//   - unseen: the number of an attempt says that there were claims which no
//     handler saw, no subscriber reported that the lease had arrived after its end,
//     and no node or Redis was struck within a lease's time.
//   - illegal: no order of the calls explains what they answered and what the
//     handlers saw. A timer is delivered after a call had removed it; a call
//     finds nothing before a handler was done, or pending what a handler had; a
//     holder is refused though nothing had happened to its timer.
//
// # What is a cause
//
// A delivery after the first of the same timer has one of these, by what the
// harness did or a handler said; "a lease later" is by Redis's clock, from the
// claim of the delivery before.
//
//   - nack: the handler failed, and the next delivery knows of one failure more.
//
//   - release: the handler's context ended with the drain of its node, or the
//     handler failed during that drain (the deadline may have been the reason),
//     and the next delivery came within half a lease of the node's end.
//
//   - crash: the handler panicked; a lease later.
//
//   - kill, SIGSTOP, Redis away: the node or Redis was struck between the claim
//     and a lease after the handler's end, no settlement was confirmed; a lease
//     later.
//
//   - lost command: a command of the node that named the timer was struck, no
//     settlement was confirmed; a lease later.
//
//   - behind a lost command: another command of the node was lost within the
//     lease, and no settlement was confirmed; a lease later. Exchanges of a
//     poller go one after another, so one that is lost holds up extensions.
//
//   - machine stalled: the node's own clock watcher, or the harness's probe of
//     Redis, was not run for 150 ms (a sixth of the lease where that is less)
//     within the lease; a lease later. It is the one fault that is observed and
//     not injected.
//
//   - ambiguous schedule: the schedule was made again after an error, or its
//     command was struck, or Redis was away during it, and the delivery before
//     came before it was acknowledged. The attempts start anew.
//
//   - late duplicate: the command that scheduled it was sent once more. The
//     attempts start anew.
//
//   - undone by Redis: Redis lost what it had written since the handler's end.
//     Acknowledged schedules that are lost that way count as "lost by Redis".
//
//   - link cut: the link of a subscriber was cut or silent between the claim and a lease
//     after the handler's end; a lease later.
//
//   - given back after a link cut: the same, and the handler had ended: what it
//     said was lost, and the subscriber gave back what it had not in hand any
//     more, which takes the claim back. It may come sooner than a lease later.
//
//   - serving node killed: the node that a subscriber has its leases from was
//     killed; a lease later.
//
// What Redis loses is made to happen: a power cut takes the file back to what it
// was a second before, a failover takes place after the replica has lost touch.
//
// # Beats
//
// The scenario beats has an account of its own. Schedules fire on a grid, and the
// id of a run's timer has its instant: an instant without a timer is lost, a run
// that two beats have printed, or more runs counted than there are timers, is
// repeated without a cause, a timer beside the grid is illegal. Redis stamps each
// run, so that its lateness is by one clock; a probe in the harness that waits for
// instants and asks Redis for its clock shows how much of it is the machine's.
//
// The scenario prefixes has one for each of two prefixes: what a beat fires, or what
// stands in a topic, of a schedule that the prefix does not have is illegal.
//
// # Across the network
//
// In the scenario remote only the serving nodes have Redis: subscribers and
// clients reach them over links that are cut, and those of subscribers fall silent:
// neither closed nor answered, for longer than a lease. The calls of half of the clients
// have idempotency keys, and nothing explains that one of those was run twice.
//
// # Mutants
//
// testdata/mutants breaks one guard each; `make faults-mutants` shows that a
// scenario notices.
//
// # Queues
//
// The scenario queue has messages in the place of timers, and their
// deduplication keys in the place of ids; a publish counts as a schedule, also
// when it is suppressed. The same rules hold, but none of the causes by which a
// schedule is made again, and these in addition. Repeated without a cause: a key
// stood for two messages, or a message became two dead letters. Lost: a handler
// rejected a message, and there is no dead letter of it. Illegal: a dead letter
// that no handler had rejected; deliveries that are counted anew; all that was
// published of a key was answered, and nothing as new. The round ends when
// nothing waits or is held; then Redis must keep no more of the queue than dead
// letters, the last token and what expires.
package faults
