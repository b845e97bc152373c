package analysis

import (
	"context"
	"sync"

	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// maxCalls is how many calls are under way at once.
	maxCalls = 16
	// maxNamespaceCalls is how many of them are for one namespace: whoever owns it cannot keep those of all others waiting.
	maxNamespaceCalls = 4
)

// turns says how many calls are under way at once: few altogether, fewer for one namespace, and one for a check of a policy. Of those that wait for
// the same, the first one comes first.
type turns struct {
	all        chan struct{}
	namespaces keyed[string]
	checks     keyed[[2]string]
}

func newTurns() *turns {
	return &turns{
		all:        make(chan struct{}, maxCalls),
		namespaces: keyed[string]{slots: maxNamespaceCalls, inUse: map[string]*slots{}},
		checks:     keyed[[2]string]{slots: 1, inUse: map[[2]string]*slots{}},
	}
}

// take waits for the turn of a measurement, and returns a function that ends it. Whoever waits holds only what cannot keep others waiting: first the
// check, then the namespace, and one of the turns of all last. The error is that of the context.
func (t *turns) take(ctx context.Context, namespace string, id *nodewisev1.MeasurementId) (end func(), err error) {
	endCheck, err := t.checks.take(ctx, [2]string{id.GetPolicyUid(), id.GetCheck()})
	if err != nil {
		return nil, err
	}
	endNamespace, err := t.namespaces.take(ctx, namespace)
	if err != nil {
		endCheck()
		return nil, err
	}
	select {
	case t.all <- struct{}{}:
		return func() { <-t.all; endNamespace(); endCheck() }, nil
	case <-ctx.Done():
		endNamespace()
		endCheck()
		return nil, ctx.Err()
	}
}

// keyed has a number of slots for each key. Keys that nobody uses or waits for are not remembered.
type keyed[K comparable] struct {
	slots int

	mu    sync.Mutex
	inUse map[K]*slots
}

// slots are those of one key, and users are those who use or wait for one.
type slots struct {
	taken chan struct{}
	users int
}

func (k *keyed[K]) take(ctx context.Context, key K) (end func(), err error) {
	k.mu.Lock()
	of := k.inUse[key]
	if of == nil {
		of = &slots{taken: make(chan struct{}, k.slots)}
		k.inUse[key] = of
	}
	of.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(k.inUse, key)
		}
	}
	select {
	case of.taken <- struct{}{}:
		return func() { <-of.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
