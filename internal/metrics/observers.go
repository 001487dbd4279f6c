package metrics

import "go.opentelemetry.io/otel/metric"

// observers are the instruments that a Node reports.
type observers struct {
	consumed, settled, lost, heartbeats, prefetched, throttled, keyThrottled, fallback, help,
	opened, handlers, pollers, dead, missing, orphans, reconnects, steps, records metric.Int64ObservableCounter

	breaker, concurrency, role, held, kept, outage, build,
	due, parked, pending, running, retrying, deadStored, nodes, paused, fault, unreadable, forecast,
	depth, inFlight, queueDead, queueNodes, schedules, beats, gateWaiting metric.Int64ObservableGauge

	oldest, age, queueOldest, late99, took99, oldestRun, gateHeld, overdue metric.Float64ObservableGauge

	all []metric.Observable
}

func newObservers(m metric.Meter) *observers {
	o := &observers{}
	counter := func(i Instrument) metric.Int64ObservableCounter {
		made := i.observableCounter(m)
		o.all = append(o.all, made)
		return made
	}
	gauge := func(i Instrument) metric.Int64ObservableGauge {
		made := i.observableGauge(m)
		o.all = append(o.all, made)
		return made
	}
	seconds := func(i Instrument) metric.Float64ObservableGauge {
		made := i.observableSeconds(m)
		o.all = append(o.all, made)
		return made
	}
	o.consumed, o.settled, o.lost, o.heartbeats = counter(consumed), counter(settled), counter(leasesLost), counter(heartbeats)
	o.prefetched, o.throttled, o.keyThrottled = counter(prefetched), counter(throttled), counter(keyThrottled)
	o.fallback, o.help, o.opened = counter(byFallbacks), counter(helpRequests), counter(breakerOpened)
	o.handlers, o.pollers, o.dead, o.missing = counter(handlerRestarts), counter(pollerRestarts), counter(deadAdded), counter(deadMissing)
	o.orphans, o.reconnects, o.steps, o.records = counter(orphansRemoved), counter(reconnects), counter(clockSteps), counter(recordsFailed)

	o.breaker, o.concurrency, o.role, o.held, o.kept = gauge(breakerOpen), gauge(concurrency), gauge(divisionRole), gauge(leasesHeld), gauge(orphansHeld)
	o.outage, o.build = gauge(outage), gauge(buildInfo)
	o.due, o.parked, o.pending, o.running, o.retrying = gauge(backlogDue), gauge(backlogParked), gauge(backlogPending), gauge(backlogRunning), gauge(backlogRetrying)
	o.deadStored, o.nodes, o.paused, o.fault = gauge(backlogDead), gauge(backlogNodes), gauge(topicPaused), gauge(topicFault)
	o.unreadable, o.forecast = gauge(topicFaults), gauge(forecastDue)
	o.depth, o.inFlight, o.queueDead, o.queueNodes = gauge(queueDepth), gauge(queueInFlight), gauge(queueDead), gauge(queueNodes)
	o.schedules, o.beats, o.gateWaiting = gauge(scheduleCount), gauge(scheduleBeats), gauge(gateWaiting)

	o.oldest, o.age, o.queueOldest = seconds(backlogOldest), seconds(backlogAge), seconds(queueOldest)
	o.late99, o.took99, o.oldestRun = seconds(late99), seconds(took99), seconds(oldestRun)
	o.gateHeld, o.overdue = seconds(gateHeldAge), seconds(scheduleOverdue)
	return o
}
