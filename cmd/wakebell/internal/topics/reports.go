package topics

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// reportLine is what a node has reported of a topic.
type reportLine struct {
	Node string `json:"node"`

	Breaker       string `json:"breaker"`
	BreakerSince  string `json:"breaker_since"`
	BreakerUntil  string `json:"breaker_until"`
	BreakerReason string `json:"breaker_reason"`

	Concurrency int    `json:"concurrency"`
	Group       string `json:"group"`
	Weight      int    `json:"weight"`
	ExpireAfter string `json:"expire_after"`

	Options map[string]any `json:"options"`
}

func reportLines(reports []wakebelltype.NodeReport) []reportLine {
	lines := []reportLine{}
	for _, r := range reports {
		s := r.State
		options, _ := overrides(s.Options)
		expireAfter := ""
		if s.ExpireAfter > 0 {
			expireAfter = s.ExpireAfter.String()
		}
		lines = append(lines, reportLine{
			Node: r.Node, Breaker: s.Breaker, BreakerSince: output.Stamp(s.BreakerSince), BreakerUntil: output.Stamp(s.BreakerUntil),
			BreakerReason: s.BreakerReason, Concurrency: s.Concurrency, Group: s.Group, Weight: s.Weight, ExpireAfter: expireAfter, Options: options,
		})
	}
	return lines
}

// openBreakers returns the reports of nodes whose circuit breaker is not closed.
func openBreakers(reports []wakebelltype.NodeReport) []wakebelltype.NodeReport {
	return slices.DeleteFunc(slices.Clone(reports), func(r wakebelltype.NodeReport) bool { return r.State.BreakerSince.IsZero() })
}

// breakerText describes the circuit breakers that are not closed: the nodes, until when
// the first of them claims nothing, and why it opened; empty: there are none.
func breakerText(screen output.Screen, reports []wakebelltype.NodeReport) string {
	open := openBreakers(reports)
	if len(open) == 0 {
		return ""
	}
	first := slices.MinFunc(open, func(a, b wakebelltype.NodeReport) int { return a.State.BreakerUntil.Compare(b.State.BreakerUntil) })
	on := path.Dir(first.Node) // without the random part
	if len(open) > 1 {
		on = fmt.Sprintf("%d nodes", len(open))
	}
	return fmt.Sprintf("breaker %s on %s since %s, until %s: %s",
		first.State.Breaker, on, screen.Time(first.State.BreakerSince), screen.Time(first.State.BreakerUntil), first.State.BreakerReason)
}

// reportText describes in a cell what nodes have reported of a topic.
func reportText(screen output.Screen, o wakebelltype.Overview) string {
	var parts []string
	add := func(text string) {
		if text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	add(breakerText(screen, o.Reports))
	add(concurrencyText(o.Reports))
	for _, r := range o.Reports {
		if r.State.Group != "" {
			add(fmt.Sprintf("group=%s weight=%d", r.State.Group, r.State.Weight))
		}
	}
	for _, r := range o.Reports {
		_, shown := overrides(limitsOf(r.State.Options))
		for _, option := range shown {
			add(option[0] + "=" + option[1])
		}
		if r.State.ExpireAfter > 0 {
			add("expire-after=" + r.State.ExpireAfter.String())
		}
	}
	return strings.Join(parts, " ")
}

// limitsOf returns the options that bound a topic over all nodes.
func limitsOf(s wakebelltype.Settings) wakebelltype.Settings {
	s = tuning.InForce(s)
	return wakebelltype.Settings{
		RateLimit: s.RateLimit, RatePer: s.RatePer, RateBurst: s.RateBurst, MaxInFlight: s.MaxInFlight, PerKey: s.PerKey,
		KeyRateLimit: s.KeyRateLimit, KeyRatePer: s.KeyRatePer, KeyRateBurst: s.KeyRateBurst, FairKeys: s.FairKeys,
	}
}

// concurrencyText is the present adaptive concurrency of nodes, from the lowest to the
// highest; empty: none has it.
func concurrencyText(reports []wakebelltype.NodeReport) string {
	least, most := 0, 0
	for _, r := range reports {
		n := r.State.Concurrency
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
		most = max(most, n)
	}
	switch {
	case most == 0:
		return ""
	case least == most:
		return "concurrency=" + strconv.Itoa(most)
	default:
		return fmt.Sprintf("concurrency=%d-%d", least, most)
	}
}

// reportStyle is the style of a cell of reports.
func reportStyle(cell string) output.Style {
	if strings.HasPrefix(cell, "breaker ") {
		return output.Bad
	}
	return output.Plain
}
