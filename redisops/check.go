package redisops

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// Check says at the start whether Redis can keep these topics: it answers, is
// at least version 6.2, and in a Cluster has all keys of a topic in one slot.
// Errors wrap [exchange.ErrUnavailable] or [ErrUnsupported].
func (s *Timers) Check(ctx context.Context, topics []string) error {
	for _, topic := range topics {
		if err := checkTopic(topic); err != nil {
			return err
		}
	}
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("check: %w", wrap(ctx, nil, err))
	}
	if err := s.checkVersion(ctx, topics); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if !s.clustered(ctx) {
		return nil
	}
	for _, topic := range topics {
		if err := s.checkSlots(topic); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion asks for a command that came with 6.2, which needs fewer rights
// than INFO, of a key that the user may read: a topic's. Without topics the
// user may have no right to the key; the command is known then.
func (s *Timers) checkVersion(ctx context.Context, topics []string) error {
	topic := "check"
	if len(topics) > 0 {
		topic = topics[0]
	}
	err := s.rdb.ZMScore(ctx, s.keys.of(topic).timeline, "probe").Err()
	switch {
	case err == nil, len(topics) == 0 && redis.IsPermissionError(err):
		return nil
	case strings.Contains(err.Error(), "unknown command"):
		return fmt.Errorf("%w: it is older than version 6.2", ErrUnsupported)
	default:
		return wrap(ctx, nil, err)
	}
}

// clustered asks INFO where the client does not say; without the right to ask,
// a plain client is taken to talk to a plain server.
func (s *Timers) clustered(ctx context.Context) bool {
	if _, ok := s.rdb.(*redis.ClusterClient); ok {
		return true
	}
	info, err := s.rdb.Info(ctx, "cluster").Result()
	return err == nil && strings.Contains(info, "cluster_enabled:1")
}

func (s *Timers) checkSlots(topic string) error {
	k := s.keys.of(topic)
	for _, key := range []string{k.payloads, k.leases, k.dead, k.stream("x", 0), k.hint, k.control, k.mark("x")} {
		if a, b := slotOf(k.timeline), slotOf(key); a != b {
			hint := "set HashTag"
			if s.keys.HashTag {
				hint = "rename the topic, its braces break the hash tag"
			}
			return fmt.Errorf("check: %w: topic %q: %q is in slot %d of the Cluster and %q in %d; %s",
				ErrUnsupported, topic, k.timeline, a, key, b, hint)
		}
	}
	return nil
}

// slotOf is the slot of a key: CRC16 (XMODEM) of its hash tag, if it has one.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slots)
}
