package timers

import (
	"context"
	"fmt"
	"strings"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// RecallWrite returns the results of those timers that a call of Write with the key has
// stored in the topic; the others have no ID. Entries are all timers of the call that belong
// in the topic with a layout, in their order.
func (s Fenced) RecallWrite(ctx context.Context, topic string, key *Key, entries []Entry) ([]wakebelltype.Scheduled, error) {
	found := make([]wakebelltype.Scheduled, 0, len(entries))
	for rest := entries; len(rest) > 0; {
		part := rest[:fitting(rest)]
		whole, each, err := s.recallPart(ctx, topic, key.after(len(found)), len(part), func(i int) *string { return &part[i].ID })
		if err != nil {
			return nil, err
		}
		done := make([]wakebelltype.Scheduled, len(part))
		if whole != "" {
			if done, err = readScheduled(part, whole, 0); err != nil {
				return nil, err
			}
		}
		if err := readKnown(part, each, done); err != nil {
			return nil, err
		}
		found, rest = append(found, done...), rest[len(part):]
	}
	return found, nil
}

// readKnown stores the answers that single timers have.
func readKnown(entries []Entry, answers []string, done []wakebelltype.Scheduled) error {
	for i, answer := range answers {
		if answer == "" {
			continue
		}
		one, err := readScheduled(entries[i:i+1], answer+"\n", 0)
		if err != nil {
			return err
		}
		done[i] = one[0]
	}
	return nil
}

// RecallCancel returns what a call of CancelKeyed or CancelFound with the key has found in
// the topic, and 0 for ids for which it has stored nothing. Ids are all of the call that
// belong in the topic with a layout, in their order.
func (s Fenced) RecallCancel(ctx context.Context, topic string, key *Key, ids ...string) ([]wakebelltype.Presence, error) {
	found := make([]wakebelltype.Presence, len(ids))
	for first := 0; first < len(ids); first += layout.KeyedEntries {
		part := ids[first:min(first+layout.KeyedEntries, len(ids))]
		whole, each, err := s.recallPart(ctx, topic, key.after(first), len(part), func(i int) *string { return &part[i] })
		if err != nil {
			return nil, err
		}
		for i, answer := range each {
			if answer == "" && i < len(whole) {
				answer = whole[i : i+1]
			}
			if answer != "" {
				found[first+i] = presenceOf(answer)
			}
		}
	}
	return found, nil
}

// recallPart returns the answers that a call with the key has stored for a round trip: the
// one to all items, and those to single ones; "" for none.
func (s Fenced) recallPart(ctx context.Context, topic string, key *Key, n int, id func(i int) *string) (whole string, each []string, err error) {
	k := s.keys.Of(topic)
	keys, args := []string{k.answers(key), k.Keyed + ":" + key.Suffix()}, []any{key.Content()}
	for i := range n {
		args = append(args, id(i))
	}
	keys, args = scripts.WithGuards(s.fence.Guards(s.keys, topic), keys, args)
	list, err := s.RunList(ctx, 1+n, recallScript, keys, args...)
	if err == nil {
		each, err = scripts.Texts(list)
	}
	if err != nil {
		return "", nil, fmt.Errorf("look for the answer of a call on %q: %w", topic, err)
	}
	if whole = each[0]; sharding.Reserved(topic) { // no call of a topic that was never divided
		whole = ""
	}
	if whole != "" {
		answer, same := strings.CutPrefix(whole, key.Content())
		if !same {
			return "", nil, fmt.Errorf("call on %q: %w", topic, wakebelltype.ErrKeyUsed)
		}
		whole = answer
	}
	return whole, each[1:], nil
}
