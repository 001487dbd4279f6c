package browser_test

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Each page, light and dark, has no serious finding of axe-core, and causes no
// console error, violation of the content security policy or failed request.
func TestPagesAreAccessibleAndFaultless(t *testing.T) {
	s := serve(t)
	s.fill()
	b := open(t, 1280, 900)
	for _, scheme := range []string{"light", "dark"} {
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		for _, page := range s.pages() {
			b.do(chromedp.Navigate(s.url+page[1]), chromedp.WaitVisible("main h1"))
			if page[0] == "nodes" {
				b.seesNodes(s.url + page[1])
			}
			require.Empty(t, b.axe(), "%s %s", scheme, page[0])
			b.faultless(page[0])
		}
	}
}

// The page of a topic follows changes, without a reload.
func TestChangesAppear(t *testing.T) {
	s := serve(t)
	b := open(t, 1280, 900)
	topic := wakebell.NewTopic[string]("live")
	_, err := topic.Schedule(t.Context(), s.client, "x", wakebell.ID("first"), wakebell.In(time.Hour))
	require.NoError(t, err)
	b.do(chromedp.Navigate(s.url+"topic?name=live"), chromedp.Evaluate("window.same = true", nil))
	b.sees("first")
	b.sees("live")
	_, err = topic.Schedule(t.Context(), s.client, "x", wakebell.ID("second"), wakebell.In(time.Hour))
	require.NoError(t, err)
	b.sees("second")
	_, err = s.client.Pause(t.Context(), "live", "otto", "maintenance")
	require.NoError(t, err)
	b.sees("maintenance")
	var same bool
	b.do(chromedp.Evaluate("window.same === true", &same))
	require.True(t, same)
	b.faultless("topic")
}

// An operator pauses, edits and cancels with the keyboard alone.
func TestKeyboardAlone(t *testing.T) {
	s := serve(t)
	_, err := wakebell.NewTopic[string]("mails").Schedule(t.Context(), s.client, "x", wakebell.ID("m-1"), wakebell.In(time.Hour))
	require.NoError(t, err)
	b := open(t, 1280, 900)
	b.do(chromedp.Navigate(s.url), chromedp.WaitVisible("main h1"))
	b.press("Topics")
	b.sees("Name contains")
	b.press("mails")
	b.sees("Upcoming")
	b.press("Pause …")
	b.sees("No node claims timers")
	b.do(chromedp.Focus("#f-reason"), chromedp.KeyEvent("by keyboard"))
	b.press("Pause")
	b.sees("is paused on all nodes")
	control, err := s.client.Control(t.Context(), "mails")
	require.NoError(t, err)
	require.Equal(t, "by keyboard", control.Reason)

	var focused string
	require.Eventually(t, func() bool { // the page is shown before its script has run
		b.do(chromedp.KeyEvent("/"), chromedp.Evaluate("document.activeElement.id", &focused))
		return focused == "find"
	}, time.Minute, 50*time.Millisecond)
	// The driver sends the character too, which a keyboard does not after preventDefault.
	b.do(chromedp.Evaluate("document.activeElement.value = ''", nil), chromedp.KeyEvent("m-1"), chromedp.KeyEvent("\r"))
	b.sees("Scheduled for")
	b.press("Cancel …")
	b.sees("for good")
	b.press("Cancel")
	b.sees("The timer is cancelled")
	b.faultless("keyboard")
}

// On a phone no page is wider than the screen.
func TestPagesFitPhone(t *testing.T) {
	s := serve(t)
	s.fill()
	b := open(t, 390, 844)
	b.do(emulation.SetDeviceMetricsOverride(390, 844, 2, true))
	for _, page := range s.pages() {
		var width int
		b.do(chromedp.Navigate(s.url+page[1]), chromedp.WaitVisible("main h1"), chromedp.Evaluate("document.documentElement.scrollWidth", &width))
		require.LessOrEqual(t, width, 390, page[0])
	}
	b.faultless("phone")
}
