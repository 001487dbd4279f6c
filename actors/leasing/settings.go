package leasing

import (
	"cmp"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Policy is what of a topic does not change while it runs.
type Policy struct {
	Batch Batch // Size 0: handlers take one lease after another

	DiscardRejects bool // rejected timers are removed instead of dead-lettered

	// RetryOnLeaseExpiry lets the lease of a failed timer expire instead of
	// settling it with a backoff.
	RetryOnLeaseExpiry bool

	// FinalErrors settles failures with exchange.Fail: they are not retried. Only
	// the source of a queue supports that.
	FinalErrors bool
	// FinalCrashes does the same for panics, where leases do not expire.
	FinalCrashes bool
	// PanicBackoff retries after a panic with the backoff of a failure, instead of when the
	// lease would have expired.
	PanicBackoff bool

	NoPeek     bool // switches the peeks off, see head.go
	NoPrefetch bool // switches the prefetch off, see prefetch.go

	// Window is for how long after an exchange with timers the next one waits, so
	// that timers share it; see window.go. 0: it does not wait.
	Window time.Duration

	// OverrideInterval is about the interval at which the override is read without hints;
	// 0: 5 min, and 1 min while limits by key are in force.
	OverrideInterval time.Duration
	// ReportInterval is the interval at which the state of the node is stored for operators;
	// 0: 30 s.
	ReportInterval time.Duration

	// Group shares its bound of concurrency with the topic by Weight; nil: none. Then
	// ShardGroup does with the shards of the topic, while Settings.Shards is above 1.
	Group      *guard.Group
	Weight     int
	ShardGroup *guard.Group

	// ExpireAfter is the time after its instant within which a timer must begin, for operators:
	// package expiry ends those that are later. 0: none.
	ExpireAfter time.Duration

	// KeyRun is how many timers of a key a claim may lease at once, where Flow.PerKey is 1; see
	// key_runs.go. 0 and 1: one.
	KeyRun int
}

// Batch configures handlers that take several leases at once.
type Batch struct {
	// Size is the largest number of deliveries of a call; 0: the topic has no
	// batches.
	Size int
	// Wait is how long a delivery waits for others until it is handled in a smaller
	// batch, at most a third of LeaseTTL. 0: it does not wait.
	Wait time.Duration
}

// maxBatched bounds the leases that the batches of a topic may have at once.
const maxBatched = 10_000

// Settings are the options that can change while a topic runs. All but
// MaxLeaseAge and Flow must be above zero.
type Settings struct {
	MaxConcurrent int           // handlers running at once
	LeaseTTL      time.Duration // extended at a third of it while a handler runs
	MaxLeaseAge   time.Duration // ends a handler that runs longer; 0: off

	// The idle backoff: from PollingInterval, doubled per empty poll, up to
	// MaxPollingInterval.
	PollingInterval, MaxPollingInterval time.Duration

	// Retry configures how failures of a handler are retried.
	Retry Retry

	// Flow bounds what all nodes claim together; the zero value does not.
	Flow exchange.Flow

	// Shards is the number of sources that share the settings; an override does not
	// change it. 0: 1.
	Shards int
	// Part is the part of the limits over all nodes that the source has.
	Part sharding.Part
}

// SettingsOf returns the settings that a user set; its inverse is Public.
func SettingsOf(s wakebelltype.Settings) Settings {
	return Settings{
		MaxConcurrent: s.MaxConcurrent, LeaseTTL: s.LeaseTTL, MaxLeaseAge: s.MaxLeaseAge,
		PollingInterval: s.PollingInterval, MaxPollingInterval: s.MaxPollingInterval,
		Retry: Retry{Initial: s.RetryInitial, Max: s.RetryLimit, MaxFailures: s.MaxAttempts},
		Flow: exchange.Flow{
			RateLimit: s.RateLimit, RatePer: s.RatePer, RateBurst: s.RateBurst, MaxInFlight: s.MaxInFlight, PerKey: s.PerKey,
			KeyRateLimit: s.KeyRateLimit, KeyRatePer: s.KeyRatePer, KeyRateBurst: s.KeyRateBurst, FairKeys: s.FairKeys,
		},
	}
}

// Public returns the settings as users set them.
func (s Settings) Public() wakebelltype.Settings {
	return wakebelltype.Settings{
		MaxConcurrent: s.MaxConcurrent, LeaseTTL: s.LeaseTTL, MaxLeaseAge: s.MaxLeaseAge,
		PollingInterval: s.PollingInterval, MaxPollingInterval: s.MaxPollingInterval,
		RetryInitial: s.Retry.Initial, RetryLimit: s.Retry.Max, MaxAttempts: s.Retry.MaxFailures,
		RateLimit: s.Flow.RateLimit, RatePer: s.Flow.RatePer, RateBurst: s.Flow.RateBurst, MaxInFlight: s.Flow.MaxInFlight, PerKey: s.Flow.PerKey,
		KeyRateLimit: s.Flow.KeyRateLimit, KeyRatePer: s.Flow.KeyRatePer, KeyRateBurst: s.Flow.KeyRateBurst, FairKeys: s.Flow.FairKeys,
	}
}

// ofPart returns the settings of a source that has a part of the limits over all nodes, and
// whether it must not claim timers. MaxConcurrent is shared by Policy.Group.
func (s Settings) ofPart(part sharding.Part) (of Settings, withheld bool) {
	if part == (sharding.Part{}) {
		return s, false
	}
	inFlight := part.Share(s.Flow.MaxInFlight)
	if part.Role == sharding.Resting {
		return s, inFlight < 0 || s.Flow.RateLimit > 0
	}
	if slower := part.Slower(); s.Flow.RateLimit > 0 {
		s.Flow.RateBurst = max(cmp.Or(s.Flow.RateBurst, s.Flow.RateLimit)/slower, 1)
		s.Flow.RatePer *= time.Duration(slower)
	}
	if inFlight < 0 {
		return s, true
	}
	s.Flow.MaxInFlight = inFlight
	return s, false
}

// Retry says how failures of a handler are retried.
type Retry struct {
	// Initial is the delay after the first failure; it doubles with each further
	// failure, up to Max. Each delay has a jitter of ±20 %, so that timers that
	// failed together are not retried together.
	Initial, Max time.Duration

	// MaxFailures is the failure after which a timer is dead-lettered; at least
	// 1.
	MaxFailures int
}

// delay is the delay before the retry that follows the given number of earlier
// failures. random is in [0, 1).
func (r Retry) delay(failures int, random float64) time.Duration {
	return backoff.Jitter(backoff.Exponential(r.Initial, failures, r.Max), 0.2, random)
}
