package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Every order of three concurrent calls is about as frequent as the others, whatever else runs on the machine.
func TestOrderOfCalls(t *testing.T) {
	const syncs = 600
	orders := map[string]int{}
	for seed := range uint64(syncs) {
		var order []int
		err := atTime(time.Date(2026, time.January, 6, 0, 0, 0, 0, time.UTC), func() {
			// The context of the test belongs to no bubble.
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			turns := newTurns(ctx, rand.New(rand.NewPCG(7, seed)))
			var calls sync.WaitGroup
			for number := range 3 {
				calls.Go(func() {
					turns.wait()
					order = append(order, number)
				})
			}
			calls.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		orders[fmt.Sprint(order)]++
	}
	for order, times := range orders {
		if times < syncs/6/2 {
			t.Errorf("the order %s occurred %d times in %d syncs", order, times, syncs)
		}
	}
	if len(orders) != 6 {
		t.Errorf("%d of 6 orders: %v", len(orders), orders)
	}
}
