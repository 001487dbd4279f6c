package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard"
)

// emptyPages are the pages that exist without any data.
var emptyPages = []string{"", "topics", "topics?sort=due", "topics?only=problems", "dead", "queues", "schedules", "gates", "nodes", "doctor", "jobs", "audit", "search?q=nothing", "do/schedule"}

func (b *browser) dark() {
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
}

// phone makes the window that of a phone.
func (b *browser) phone() { b.do(emulation.SetDeviceMetricsOverride(390, 844, 2, true)) }

// Pages without data, and those of a viewer, are as faultless as full ones.
func TestEmptyPagesAndThoseOfViewerAreFaultless(t *testing.T) {
	empty := serve(t)
	b := open(t, 1280, 900)
	for _, page := range emptyPages {
		b.do(chromedp.Navigate(empty.url+page), chromedp.WaitVisible("main h1"))
		b.faultless("empty " + page)
	}
	full := serve(t, func(c *dashboard.Config) { c.Writable = false })
	full.fill()
	b.dark()
	for _, page := range full.pages() {
		if page[0] == "ask" || page[0] == "new" || page[0] == "editor" || page[0] == "redrive" {
			continue // they are refused
		}
		var changes int
		b.do(chromedp.Navigate(full.url+page[1]), chromedp.WaitVisible("main h1"),
			chromedp.Evaluate(`document.querySelectorAll('main a[href*="/do/"]').length`, &changes))
		require.Zero(t, changes, page[0])
		b.faultless("viewer " + page[0])
	}
}

// An open page has the banner of an outage, and loses it; its charts are those of before.
func TestOutageIsShownAndEnds(t *testing.T) {
	s := serve(t)
	s.fill()
	b := open(t, 390, 844)
	b.phone()
	b.do(chromedp.Navigate(s.url), chromedp.WaitVisible("#ahead figure svg rect"))
	b.sees("Next 24 hours")
	b.faultless("before")
	s.server.Pause()
	b.do(chromedp.WaitVisible("#outage"))
	s.server.Resume()
	b.do(chromedp.WaitNotVisible("#outage"))
}

// A Redis whose user may read nothing is reported on every page, in a page like the others.
func TestMissingRightsAreReported(t *testing.T) {
	s := serve(t)
	s.fill()
	pages := s.pages()
	require.NoError(t, s.rdb.Do(t.Context(), "ACL", "SETUSER", "default", "-@all", "+ping", "+acl").Err())
	b := open(t, 390, 844)
	b.phone()
	for _, page := range pages {
		if page[0] == "jobs" || page[0] == "new" { // they ask nothing of Redis
			continue
		}
		b.do(chromedp.Navigate(s.url+page[1]), chromedp.WaitVisible("main h1"))
		b.sees("NOPERM")
		b.statusAside()
		b.faultless("no rights " + page[0])
	}
}

// statusAside forgets that the browser logs the status 403 of the page itself.
func (b *browser) statusAside() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = slices.DeleteFunc(b.faults, func(fault string) bool { return strings.Contains(fault, "the server responded with a status of 403") })
}

// The table of many topics fits a phone with Due and Dead, and is sorted by a click.
func TestManyTopicsOnPhone(t *testing.T) {
	s := serve(t)
	drafts := make([]wakebell.Draft, 0, 203)
	for n := range 200 {
		drafts = append(drafts, wakebell.NewTopic[string](fmt.Sprintf("team-%03d.notifications-by-electronic-mail", n)).Draft("x", wakebell.In(time.Hour)))
	}
	for range 3 {
		drafts = append(drafts, wakebell.NewTopic[string]("zebra").Draft("x", wakebell.In(0)))
	}
	_, err := s.client.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	b := open(t, 390, 844)
	b.phone()
	b.do(chromedp.Navigate(s.url+"topics"), chromedp.WaitVisible("table.topics"))
	var right float64
	for _, column := range []string{"Due", "Dead"} {
		b.do(chromedp.Evaluate(`[...document.querySelectorAll("table.topics th")].find(th => th.textContent.trim() === "`+column+`").getBoundingClientRect().right`, &right))
		require.LessOrEqual(t, right, 390.0, column)
	}
	b.do(chromedp.Click(`//table//th/a[text()="Due"]`, chromedp.BySearch))
	require.Eventually(t, func() bool { // the counts may be read meanwhile
		var first string
		b.do(chromedp.Evaluate(`(document.querySelector("table.topics tbody th a") || {textContent: ""}).textContent`, &first))
		return first == "zebra"
	}, time.Minute, 50*time.Millisecond)
	b.faultless("many topics")
}

// A million in a card does not leave it, and words of a table are whole.
func TestLargeNumbersFitTheirCards(t *testing.T) {
	s := serve(t)
	s.fill()
	b := open(t, 1440, 900)
	b.do(chromedp.Navigate(s.url), chromedp.WaitVisible(".cards"))
	var wide int
	b.do(chromedp.Evaluate(`[...document.querySelectorAll(".cards b")].filter(e => { e.textContent = "10,000,000"; return e.scrollWidth > e.clientWidth }).length`, &wide))
	require.Zero(t, wide)
	var broken []string
	b.do(chromedp.Navigate(s.url+"topics"), chromedp.WaitVisible("table.topics"),
		chromedp.Evaluate(`[...document.querySelectorAll('table.topics th[scope="row"] a')].filter(e => e.getClientRects().length > 1).map(e => e.textContent)`, &broken))
	require.Empty(t, broken)
	b.faultless("large numbers")
}
