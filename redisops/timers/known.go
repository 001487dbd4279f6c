package timers

import (
	"sync"
	"time"
)

// maxKnown is the most topics of a generation of known, of which it keeps two.
const maxKnown = 4096

// known is what a store remembers of the topics that it used lately. What it
// forgets costs one command more when the topic is used again. It forgets a topic
// that was not used for two minutes, and earlier where many others are.
//
// Topics are kept in two generations: one that is used moves to the younger, and
// when that is full or a minute old, it replaces the older.
type known struct {
	mu           sync.Mutex
	young, older map[string]knownTopic
	since        time.Time // when the younger began
}

type knownTopic struct {
	registered time.Time // when it was last put in the registry; zero: not known
	sound      bool      // a script has found its keys of the right types
}

// of is what is known of a topic. The caller holds mu.
func (k *known) of(topic string) knownTopic {
	if t, ok := k.young[topic]; ok {
		return t
	}
	return k.older[topic]
}

// Set remembers a topic. The caller holds mu.
func (k *known) set(topic string, t knownTopic) {
	if now := time.Now(); k.young == nil || len(k.young) >= maxKnown || now.Sub(k.since) >= registerEvery {
		k.young, k.older, k.since = map[string]knownTopic{}, k.young, now
	}
	k.young[topic] = t
	delete(k.older, topic)
}

// sound reports whether the keys of a topic were as they should be.
func (k *known) sound(topic string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of(topic).sound
}

// found remembers whether the keys of a topic are as they should be.
func (k *known) found(topic string, sound bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.of(topic)
	t.sound = sound
	k.set(topic, t)
}

// register reports whether a topic is to be put in the registry, which the caller
// then does.
func (k *known) register(topic string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.of(topic)
	if !t.registered.IsZero() && time.Since(t.registered) < registerEvery {
		return false
	}
	t.registered = time.Now()
	k.set(topic, t)
	return true
}

// forget forgets a topic that was removed.
func (k *known) forget(topic string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.young, topic)
	delete(k.older, topic)
}
