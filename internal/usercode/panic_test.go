package usercode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// recovered returns the text for a call that panics.
func recovered(call func()) (text string) {
	defer func() { text = PanicText(recover()) }()
	call()
	return ""
}

func TestPanicTextSaysWhere(t *testing.T) {
	t.Parallel()
	var empty []int
	var missing map[string]int
	for want, call := range map[string]func(){
		`panic: no such order at usercode/panic_test\.go:\d+`:                     func() { panic("no such order") },
		`panic: refused at usercode/panic_test\.go:\d+`:                           func() { panic(errors.New("refused")) },
		`panic: runtime error: index out of range \[3\].* at usercode/panic_test`: func() { _ = empty[3] },
		`panic: assignment to entry in nil map at usercode/panic_test\.go:\d+`:    func() { missing["a"] = 1 },
		`panic: again at usercode/panic_test\.go:\d+`: func() {
			defer func() { panic(recover()) }()
			panic("again")
		},
		`^handler ended its goroutine$`: func() {},
	} {
		require.Regexp(t, want, recovered(call))
	}
}
