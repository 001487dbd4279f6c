// Package faults injects faults into real nodes and a real Redis, and accounts
// for every timer afterwards. It is a test harness: `make faults` runs it for
// hours, `make test` runs one round of most scenarios.
//
// # A round
//
// A scenario has its own redis-server, node processes (the test binary in
// another role, see [NodeMain]) whose handlers do what the bodies of the timers
// say, clients in the harness, and a [DeliveryLog]. Nodes print a line when a
// handler begins, requests a settlement, receives its result, and ends. After the
// load has ended, the round waits until Redis has no timer, stops the nodes,
// checks that no payload, lease record or timeline entry is left, and judges the
// delivery log. All choices are derived from the seed, the scenario and the
// number of the round; their timing is not reproducible.
//
// # What is a violation
//
//   - lost: a timer whose schedule was acknowledged, that was not replaced or
//     cancelled, disappeared before a handler was done with it. A dead letter
//     counts as done if a handler had failed.
//
//   - early: the instant of the claim, by Redis's clock, is before the instant of
//     the timer that Redis answered, or, if the call may have run twice, before
//     the one computed from the start of the call.
//
//   - repeated without a cause, as below.
//
//   - stale: a settlement was confirmed to a handler after another one had
//     claimed the timer, or after a call had found it running and replaced it.
//
//   - overlapping: a handler was still running while the next handler of its timer
//     ran, for longer than its process was not scheduled by the machine. It is
//     judged where handlers end with their contexts: in the scenario remote.
//
//   - unseen: by the attempt number there were claims that reached no handler, no
//     subscriber reported that the lease had arrived after its end, and no node or
//     Redis was hit by a fault within the duration of a lease.
//
//   - illegal: no order of the calls explains their answers and the deliveries. A
//     timer is delivered after a call had removed it; a call finds nothing before
//     a handler was done, or finds the timer pending while a handler has it; the
//     settlement of a holder is refused although nothing happened to its timer.
//
//   - unordered: a timer of a key overtook an earlier one, or too many held the key at
//     once. Over a limit: more timers started than burst + rate × time, or more leases
//     were held than MaxInFlight. These are judged in the scenarios keys and hand-over.
//
// # What is a cause
//
// A delivery after the first of the same timer needs one of these causes, by what
// the harness did or a handler printed. "A lease later" is measured by Redis's
// clock from the claim of the previous delivery.
//
//   - nack: the handler failed, and the next delivery has one failure more.
//
//   - release: the handler's context ended with the drain of its node, or the
//     handler failed during that drain (the deadline may have been the reason),
//     and the next delivery came within half a lease of the node's end.
//
//   - crash: the handler panicked, which counted as a failure; a lease later.
//
//   - kill, lease lost by SIGSTOP, Redis away for a lease: the node or Redis was
//     hit between the claim and a lease after the handler's end, and no settlement
//     was confirmed; a lease later.
//
//   - lost command: a command of the node that named the timer was hit, and no
//     settlement was confirmed; a lease later.
//
//   - delayed by a lost command: another command of the node was lost within the
//     lease, and no settlement was confirmed; a lease later. The exchanges of a
//     poller are sequential, so a lost one delays extensions.
//
//   - machine stalled: the clock watcher of the node, or the harness's probe of
//     Redis, was not scheduled for 150 ms (a sixth of the lease if that is less)
//     within the lease; a lease later. This is the one fault that is observed
//     rather than injected.
//
//   - ambiguous schedule: the schedule was repeated after an error, or its command
//     was hit, or Redis was away during it, and the previous delivery came before
//     it was acknowledged. Attempts count from 1 again.
//
//   - late duplicate of the schedule: the command that scheduled the timer was
//     sent again. Attempts count from 1 again.
//
//   - undone by Redis: Redis lost its writes since the handler's end. Acknowledged
//     schedules that are lost in this way count as "lost by Redis".
//
//   - two masters: the timer was claimed while Redis lost its writes, or the node of the
//     previous delivery wrote to the master that was replaced. In a Cluster a master that
//     continues after its replica was elected answers claims for a moment.
//
//   - link cut: the link of a subscriber was cut or silent between the claim and a
//     lease after the handler's end; a lease later.
//
//   - returned after a link cut: the same, and the handler had ended. Its verdict
//     was lost, and after it reconnected the subscriber returned the leases that it
//     no longer processed, which undoes the claim. It may come sooner than a lease
//     later.
//
//   - redrive of its dead letter: a handler rejected it, and its dead letter was redriven
//     between the two deliveries. A timer that was redriven and not delivered is lost.
//
//   - serving node killed: the node that a subscriber has its leases from was
//     killed; a lease later.
//
// Losses of data by Redis are injected too: a power cut truncates the append-only
// file to its size a second before, and a failover happens after the replica has
// lost its connection.
//
// # Beats
//
// The scenario beats has its own account. Schedules fire on a grid, and the id of
// a run's timer contains its instant. An instant without a timer is lost. A run
// that two beats have printed, or a count of runs higher than the number of timers,
// is repeated without a cause. A timer off the grid is illegal. Redis timestamps
// each run, so lateness is measured by one clock. A probe in the harness that waits
// for instants and asks Redis for the time shows how much of the lateness is due
// to the machine.
//
// The scenario prefixes has one account for each of two prefixes: a run that a
// beat fires, or a timer in a topic, of a schedule of the other prefix is illegal.
//
// # Across the network
//
// In the scenario remote only the serving nodes have access to Redis. Subscribers
// and clients reach them over links that are cut. Links of subscribers also fall
// silent for longer than a lease: they are neither closed nor answered. The calls
// of half of the clients have idempotency keys, and no cause excuses that one of
// those ran twice.
//
// # Keys and limits
//
// The scenario keys has one topic with PerKey, a rate limit and MaxInFlight, and in two
// rounds of three a rate limit of each key. The scenario hand-over has PerKey(1) alone, and
// few keys with long queues. The judge reads the delivery log alone. A
// timer holds its key, and is a lease in flight, from its claim until its last handler
// ends, because it is settled after that; retries included. Claims whose answer was lost
// or delayed have a later instant than they had in Redis: they are left out where that
// would make a violation. So are timers that were scheduled when a later one of their key
// may have waited for a token already. With PerKey(2), a timer may come after a later one
// if a fault may have delayed a claim of it for so long that its lease went back, and it
// had a place beside the later one; with PerKey(1) it may not.
//
// # All at once
//
// The scenario joint has a topic with keys and all limits. While an operator pauses it and
// changes its limits, clients schedule in the order of keys, schedule again, reschedule,
// cancel and redrive, and nodes are killed and suspended, the number of its shards changes,
// the master fails over, and the topic moves to another Redis; the commands that move timers
// are killed as well. No client calls during the failover, so that every answer is known,
// and the replica has all writes then: nothing may be lost. The order is judged of keys whose
// timers are scheduled once each; of the others, how many run at once. A lease ends when a
// call finds its timer running, and its handler may go on.
//
// # Stalls
//
// The scenario stalls suspends processes with SIGSTOP: nodes, Redis, and clients, which
// are processes of their own there. With the flag -faults.stalls all other scenarios have
// such stalls beside their own faults, of beats, subscribers and serving nodes too; clients
// in the harness and the servers of the scenarios failover and cluster have none. A stall
// of Redis or of a serving node affects all nodes, with the cause "lease lost by SIGSTOP".
//
// # Gates
//
// The scenario gates has turns in place of timers, and the account of package gatefaults.
// Turns that overlap, and tokens that do not grow, are overlapping; waiters that were
// overtaken are unordered; a token that the guard accepted after a newer one is stale; a
// process without a turn after the last fault has lost it.
//
// # Clusters
//
// In the scenario cluster a master that was suspended until its replica was elected may
// confirm writes when it continues, before it knows. Redis loses them: such a settlement
// is not stale.
//
// # Partitions
//
// The scenarios partition, partition-guarded, partition-replica and partition-cluster part
// hosts (package partition), while all processes go on. There are two masters then. A fault
// DataLoss with a target says that a process wrote to the one that is replaced: its
// acknowledged schedules may be lost ("lost by Redis"), and a timer that it claimed or settled
// may be delivered on the other side ("two masters"), also while its handler runs; such
// overlaps are counted, and all others are violations. A schedule that all replicas
// confirmed must not be lost. One that a replica confirmed may be: the replica may be on the
// side of the old master, as in partition-replica, or follow it for a second after the cut
// while another one is the master. The report says how many there were.
//
// # Reminders
//
// The scenario reminders has reminders in place of timers, which are delivered when they
// reach their actors. The actors set them themselves, and print the answers that they
// receive. Delivery is at least once, so repeats need no cause and are not judged: only
// lost and early reminders are violations.
//
// # Mutants
//
// Each patch of testdata/mutants breaks one guard; `make faults-mutants` shows that
// a scenario detects it.
//
// # Queues
//
// The scenario queue has messages in place of timers, and their deduplication keys
// in place of ids. A publish counts as a schedule, also when it is suppressed. The
// same rules apply, except for the causes by which a schedule is repeated, and
// these in addition:
//
//   - repeated without a cause: a key stood for two messages, or a message became
//     two dead letters.
//   - lost: a handler rejected a message, and it has no dead letter.
//   - illegal: a dead letter that no handler had rejected; a delivery count that
//     starts again; all publishes of a key were answered, and none as new.
//
// The round ends when no message is waiting or held. Redis must then have nothing
// of the queue except dead letters, the last token and keys that expire.
package faults
