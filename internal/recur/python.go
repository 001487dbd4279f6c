package recur

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// whole is an integer. Python may write it as a float, such as 60.0.
type whole int64

func (w *whole) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		*w = whole(n)
		return nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return fmt.Errorf("%.50s is not a whole number", raw)
	}
	*w = whole(f)
	return nil
}

// wholes converts numbers of JSON.
func wholes(list []whole) []int {
	all := make([]int, len(list))
	for i, n := range list {
		all[i] = int(n)
	}
	return all
}

// notNumbers are the values that Python writes without quotes although JSON has none
// of them, and the strings that stand for them in [Portable] JSON. A string of a user
// that begins with a NUL and is equal to one of these is taken for the value.
var notNumbers = []struct{ python, portable []byte }{
	{[]byte("-Infinity"), []byte(`"\u0000-Infinity"`)},
	{[]byte("Infinity"), []byte(`"\u0000Infinity"`)},
	{[]byte("NaN"), []byte(`"\u0000NaN"`)},
}

// Portable returns JSON in which the values NaN, Infinity and -Infinity of Python are
// strings that [Native] makes values again.
func Portable(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Infinity")) {
		return raw
	}
	return replaced(raw, func(rest []byte) (n int, with []byte) {
		for _, v := range notNumbers {
			if bytes.HasPrefix(rest, v.python) {
				return len(v.python), v.portable
			}
		}
		return 0, nil
	})
}

// Native returns JSON as Python writes it: the reverse of [Portable].
func Native(raw []byte) []byte { return withoutPortable(raw, nil) }

// standard returns [Portable] JSON with null for the values that JSON does not have.
func standard(raw []byte) []byte { return withoutPortable(raw, []byte("null")) }

// withoutPortable replaces the strings of notNumbers by a text; nil: by their values.
func withoutPortable(raw, text []byte) []byte {
	if !bytes.Contains(raw, []byte(`"\u0000`)) {
		return raw
	}
	return replaced(raw, func(rest []byte) (n int, with []byte) {
		for _, v := range notNumbers {
			if bytes.HasPrefix(rest, v.portable) {
				if text == nil {
					return len(v.portable), v.python
				}
				return len(v.portable), text
			}
		}
		return 0, nil
	})
}

// replaced replaces tokens of JSON. The function returns the length of the token at the
// beginning of its argument that is to be replaced, 0 for none.
func replaced(raw []byte, replace func(rest []byte) (n int, with []byte)) []byte {
	var out []byte
	for i := 0; i < len(raw); {
		n, with := replace(raw[i:])
		if n == 0 {
			n = tokenLength(raw[i:])
			with = raw[i : i+n]
		}
		out = append(out, with...)
		i += n
	}
	return out
}

// tokenLength returns the length of the string at the beginning of JSON, or 1.
func tokenLength(raw []byte) int {
	if raw[0] != '"' {
		return 1
	}
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}
