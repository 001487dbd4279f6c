package moduleonly

import "github.com/wakebell/wakebell/actors/poller"

// LeaseTarget returns a wakebell.Target that passes leases and their ends to sink by
// function calls.
var LeaseTarget func(sink poller.LeaseSink) any
