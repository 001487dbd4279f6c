package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	w, err := newWorld(0.4, os.Stderr)
	if err != nil {
		panic(err)
	}
	defer w.close()
	for _, n := range []int{1, 1000, 10000} {
		s, err := idleNode(n)(context.Background(), w)
		fmt.Println(n, s, err)
	}
}
