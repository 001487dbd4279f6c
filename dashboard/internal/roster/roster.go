// Package roster knows the nodes of a cluster by asking them while pages show them. One
// question serves all pages.
package roster

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// MaxTopics bounds the topics of a question.
	MaxTopics = 1000
	askEvery  = 5 * time.Second
	perTopic  = 25 * time.Millisecond // of many topics, questions are further apart
	askLimit  = 10 * time.Second
	// gap is how long without a question makes silence say nothing: a node may have ended in
	// good order meanwhile.
	gap = time.Minute
	// missedUntilSilent is how many questions in a row a dead node leaves unanswered.
	missedUntilSilent = 2
	// forgottenAfter is for how long the silence of a node is shown.
	forgottenAfter = 10 * time.Minute
)

// Answer is what a node said last of a topic.
type Answer struct {
	Node, Topic string
	At          time.Time
	State       wakebelltype.NodeState
	Known       bool // nodes of earlier versions say nothing of their state
	Silent      bool // it answers no more
	missed      int
}

// Roster asks on demand.
type Roster struct {
	ask func(ctx context.Context, topics ...string) ([]wakebelltype.NodeAnswer, error)

	mu      sync.Mutex
	running chan struct{} // closed when the question that runs has ended; nil: none runs
	ended   time.Time     // the last question
	next    time.Time     // when the next one may begin
	known   map[key]*Answer
	left    map[string]time.Time // nodes, and when one last said that it leaves a topic
	err     error
}

type key struct{ node, topic string }

// New returns a Roster.
func New(ask func(ctx context.Context, topics ...string) ([]wakebelltype.NodeAnswer, error)) *Roster {
	return &Roster{ask: ask, known: map[key]*Answer{}, left: map[string]time.Time{}}
}

// Answers returns what is known of the nodes, sorted by node and topic, and asks those of
// topics if the last question is too old. It waits for the first question only, for up to
// wait. asking is true while nothing is known yet. The error is that of the last question.
func (r *Roster) Answers(ctx context.Context, wait time.Duration, topics []string) (answers []Answer, asking bool, err error) {
	r.mu.Lock()
	now := time.Now()
	if r.running == nil && len(topics) > 0 && !now.Before(r.next) {
		r.running = make(chan struct{})
		go r.run(context.WithoutCancel(ctx), topics[:min(len(topics), MaxTopics)], r.running)
	}
	running, first := r.running, r.ended.IsZero()
	r.mu.Unlock()
	if running != nil && first {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-running:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.known {
		answers = append(answers, *a)
	}
	slices.SortFunc(answers, func(a, b Answer) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Topic, b.Topic)) })
	return answers, r.ended.IsZero() && running != nil, r.err
}

// Left notes that a node has ended in good order, or handles a topic no more. Of the other
// topics, the next question shows which: a node that has left is not silent.
func (r *Roster) Left(node, topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key{node, topic})
	r.left[node] = time.Now()
}

func (r *Roster) run(ctx context.Context, topics []string, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var answers []wakebelltype.NodeAnswer
	err := usercode.Called("asking nodes", func() (err error) {
		answers, err = r.ask(ctx, topics...)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(done)
	now := time.Now()
	if now.Sub(r.ended) > gap+time.Duration(len(topics))*perTopic {
		clear(r.known)
	}
	r.running, r.ended, r.err = nil, now, err
	r.next = now.Add(max(askEvery, time.Duration(len(topics))*perTopic))
	unasked, partly := errors.AsType[*wakebelltype.UnaskedError](err)
	if err != nil && !partly {
		return // silence says nothing
	}
	if partly {
		topics = slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return slices.Contains(unasked.Topics, topic) })
	}
	r.note(answers, topics, now)
}

// note takes the answers to a question.
func (r *Roster) note(answers []wakebelltype.NodeAnswer, topics []string, now time.Time) {
	asked := map[string]bool{}
	for _, topic := range topics {
		asked[topic] = true
	}
	for k, a := range r.known {
		if asked[k.topic] {
			a.missed++
		}
		a.Silent = a.missed >= missedUntilSilent
		if now.Sub(a.At) > forgottenAfter || a.missed > 0 && r.left[k.node].After(a.At) {
			delete(r.known, k)
		}
	}
	maps.DeleteFunc(r.left, func(_ string, at time.Time) bool { return now.Sub(at) > forgottenAfter })
	for _, said := range answers {
		a := &Answer{Node: said.Node, Topic: said.Topic, At: now}
		if said.State != nil {
			a.State, a.Known = *said.State, true
		}
		r.known[key{said.Node, said.Topic}] = a
	}
}

// Cover returns up to n topics which together have all nodes that answer, if n suffices.
func Cover(answers []Answer, n int) (topics []string) {
	of := map[string][]string{} // nodes of topics
	for _, a := range answers {
		if !a.Silent {
			of[a.Topic] = append(of[a.Topic], a.Node)
		}
	}
	for covered := map[string]bool{}; len(topics) < n; {
		best, most := "", 0
		for topic, nodes := range of {
			count := 0
			for _, node := range nodes {
				if !covered[node] {
					count++
				}
			}
			if count > most || count == most && count > 0 && topic < best {
				best, most = topic, count
			}
		}
		if most == 0 {
			break
		}
		topics = append(topics, best)
		for _, node := range of[best] {
			covered[node] = true
		}
	}
	return topics
}
