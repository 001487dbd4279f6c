package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/bodytext"
)

// Any timer is printed as valid JSON, with its body in one form.
func FuzzContent(f *testing.F) {
	f.Add("application/json", []byte(`{"a": 1}`))
	f.Add("application/json; charset=utf-8", []byte(`{"a": `))
	f.Add("text/plain", []byte("a\xff\x00"))
	f.Add("text/; x", []byte("<&>\u2028"))
	f.Add("", []byte(nil))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		c := NewContent(wakebell.Content{ContentType: contentType, Body: body})
		line, err := JSONLine(c)
		require.NoError(t, err)
		require.True(t, json.Valid(line), "%q", line)
		require.NotEqual(t, c.Body == nil, c.BodyBase64 == nil)
		require.NotEmpty(t, c.Rows())
	})
}

func TestContentIsShownByItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contentType, body, want string }{
		{"application/json", ` {"a": "<b>\u2028"} `, `"body":{"a":"<b>\u2028"}`},
		{"application/json; charset=utf-8", "[\n1.50,\n12345678901234567890]", `"body":[1.50,12345678901234567890]`},
		{"application/json", "{broken", `"body_base64":"e2Jyb2tlbg=="`},
		{"application/json", "\"\xff\"", `"body_base64":"Iv8i"`},
		{"text/plain", "a\n\"b\" <c>", `"body":"a\n\"b\" <c>"`},
		{"TEXT/Markdown; charset=utf-8", "# x", `"body":"# x"`},
		{"text/plain", "\xff", `"body_base64":"/w=="`},
		{"text/plain", "", `"body":""`},
		{"", "", `"body":null`},
		{"", "{}", `"body_base64":"e30="`},
		{"image/png", "", `"body_base64":""`},
		{"///", "x", `"body_base64":"eA=="`},
	} {
		line, err := JSONLine(NewContent(wakebell.Content{ContentType: c.contentType, Body: []byte(c.body)}))
		require.NoError(t, err)
		require.Contains(t, string(line), c.want)
		require.Equal(t, 1, bytes.Count(line, []byte("\n")))
	}
}

// A large or deeply nested body has a bounded line for people, and is whole as JSON.
func TestBodiesForPeopleAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]wakebell.Content{
		"deep JSON":      {ContentType: "application/json", Body: []byte(strings.Repeat("[", 9990) + strings.Repeat("]", 9990))},
		"large JSON":     {ContentType: "application/json", Body: []byte(`"` + strings.Repeat("x", 4<<20) + `"`)},
		"invisible text": {ContentType: "text/plain", Body: []byte(strings.Repeat("\u202e", 1<<20))},
		"bytes":          {Body: bytes.Repeat([]byte{0xff}, 1<<20)},
	} {
		content := NewContent(c)
		require.LessOrEqual(t, len(Escape(content.Shown())), 4*bodytext.MaxShown, name)
		line, err := JSONLine(content)
		require.NoError(t, err)
		require.Less(t, len(line), 3*len(c.Body)+1<<10, name)
		require.GreaterOrEqual(t, len(line), len(c.Body), name)
	}
}
