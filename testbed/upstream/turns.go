package main

import (
	"context"
	"math/rand/v2"
	"testing/synctest"
)

// turns lets concurrent calls pass one after the other, in a random order. Go's scheduler alone nearly always has the same
// order, and on a busy machine it keeps it for hundreds of syncs.
type turns struct {
	arrived chan chan struct{}
	chance  *rand.Rand
}

// newTurns starts the goroutine that gives turns. It runs in the bubble of a sync and ends with `ctx`.
func newTurns(ctx context.Context, chance *rand.Rand) *turns {
	t := &turns{arrived: make(chan chan struct{}), chance: chance}
	go t.run(ctx)
	return t
}

// wait returns when it is the caller's turn.
func (t *turns) wait() {
	turn := make(chan struct{})
	t.arrived <- turn
	<-turn
}

func (t *turns) run(ctx context.Context) {
	var waiting []chan struct{}
	for {
		if len(waiting) == 0 {
			select {
			case turn := <-t.arrived:
				waiting = append(waiting, turn)
			case <-ctx.Done():
				return
			}
		}
		// When all other goroutines are blocked, every call that can be made before the next answer has arrived.
		synctest.Wait()
		waiting = append(waiting, t.others()...)
		next := t.chance.IntN(len(waiting))
		close(waiting[next])
		waiting[next] = waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
	}
}

// others returns the calls that have arrived since.
func (t *turns) others() (arrived []chan struct{}) {
	for {
		select {
		case turn := <-t.arrived:
			arrived = append(arrived, turn)
		default:
			return arrived
		}
	}
}
