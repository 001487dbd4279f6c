package reminder

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	for id, of := range map[string]Recipient{
		"actor/cart-17/close":                      {ID: "cart-17"},
		"actor/shop%2Fcart-17/close":               {ID: "shop/cart-17"},
		"at/10.0.0.5:7070/cart-17/close":           {ID: "cart-17", Address: "10.0.0.5:7070"},
		"identity/cart/17$/close":                  {ID: "17$", Kind: "cart"},
		"identity/%D0%BA/17%25%2Fx/close":          {ID: "17%/x", Kind: "к"},
		"at/at/actor/close":                        {ID: "actor", Address: "at"},
		"identity/10.0.0.5:7070/cart-17%2Fx/close": {ID: "cart-17/x", Kind: "10.0.0.5:7070"},
		"actor/10.0.0.5:7070%2Fcart-17%2Fx/close":  {ID: "10.0.0.5:7070/cart-17/x"},
	} {
		require.Equal(t, id, reminderID(of, "close"))
		to, name, ok := parseID(id)
		require.True(t, ok, id)
		require.Equal(t, of, to)
		require.Equal(t, "close", name)
	}
	for _, id := range []string{
		"", "actor", "actor/x", "actor//x", "actor/x/", "actor/x/y/z", "at/x/y", "timer/x/y", "actor/%zz/y", "actor/%78/y", "actor/$1/y",
	} {
		_, _, ok := parseID(id)
		require.False(t, ok, id)
	}
}

// Different reminders have different ids.
func TestIDsAreDistinct(t *testing.T) {
	t.Parallel()
	part := rapid.StringOfN(rapid.SampledFrom([]rune("a/%2F:@é")), 1, 5, -1)
	draw := rapid.Custom(func(t *rapid.T) [4]string {
		to := [4]string{part.Draw(t, "id"), "", "", part.Draw(t, "name")}
		switch rapid.IntRange(0, 2).Draw(t, "where") {
		case 1:
			to[1] = part.Draw(t, "address")
		case 2:
			to[2] = part.Draw(t, "kind")
		}
		return to
	})
	id := func(of [4]string) string { return reminderID(Recipient{of[0], of[1], of[2]}, of[3]) }
	rapid.Check(t, func(t *rapid.T) {
		one, other := draw.Draw(t, "one"), draw.Draw(t, "other")
		require.Equal(t, one == other, id(one) == id(other))
		to, name, ok := parseID(id(one))
		require.True(t, ok)
		require.Equal(t, [4]string{to.ID, to.Address, to.Kind, name}, one)
	})
}

func TestInvalidRecipients(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"$1", "cart/$1", "$1/cart", "cart$1", "a/b$2/c"} {
		require.ErrorIs(t, Recipient{ID: id}.Validate(), ErrAutomaticName)
	}
	require.NoError(t, Recipient{ID: "$1", Kind: "dollars"}.Validate())
	for _, to := range []Recipient{{}, {Kind: "cart"}, {ID: "\xff"}, {ID: "x", Address: "y", Kind: "z"}, {ID: "x", Kind: "\xff"}} {
		require.Error(t, to.Validate())
	}
}

// Read either fails or returns everything that a delivery needs. The recipient and
// the name can be restored from the id.
func FuzzRead(f *testing.F) {
	message, err := anypb.New(durationpb.New(1))
	require.NoError(f, err)
	for _, m := range []*messages.KeptReminder{
		bodyOf(Recipient{ID: "cart-17"}, &messages.KeptReminder{Name: "close", Message: message}),
		bodyOf(Recipient{ID: "17", Kind: "cart"}, &messages.KeptReminder{Name: "close", Message: message}),
		bodyOf(Recipient{ID: "$1", Address: "x"}, &messages.KeptReminder{Message: message}),
		{},
	} {
		raw, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m messages.KeptReminder
		if proto.Unmarshal(raw, &m) != nil {
			return
		}
		to, err := recipientOf(&m)
		if err != nil {
			return
		}
		require.NotEmpty(t, m.GetMessage().MessageName())
		parsed, name, ok := parseID(reminderID(to, m.GetName()))
		require.True(t, ok)
		require.Equal(t, to, parsed)
		require.Equal(t, m.GetName(), name)
	})
}
