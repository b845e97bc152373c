package planclient

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// minLookupPeriod is the shortest time between two look-ups, however often they are requested.
	minLookupPeriod = time.Second
	lookupTimeout   = 10 * time.Second
)

func systemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// discovery keeps the set of replicas up to date. The set is the addresses of all targets.
type discovery struct {
	targets  []target
	replicas *replicas
	// found are the addresses of each target, as they were found last.
	found [][]endpoint
	// removed is called with replicas that are no longer in the set.
	removed func([]*replica)
}

// start adds the addresses that need not be looked up.
func (d *discovery) start() error {
	d.found = make([][]endpoint, len(d.targets))
	for i, target := range d.targets {
		if !target.isName() {
			d.found[i] = target.endpoints(target.address())
		}
	}
	return d.replace()
}

func (d *discovery) replace() error {
	removed, err := d.replicas.replace(slices.Concat(d.found...))
	if len(removed) > 0 {
		d.removed(removed)
	}
	return err
}

// follow looks the names up until the context ends: every lookupPeriod, and when a look-up is requested.
func (d *discovery) follow(ctx context.Context) {
	hasNames := slices.ContainsFunc(d.targets, func(t target) bool { return t.isName() })
	for hasNames && ctx.Err() == nil {
		d.lookUp(ctx)
		if !sleep(ctx, minLookupPeriod) {
			return
		}
		select {
		case <-ctx.Done():
		case <-d.replicas.lookups:
		case <-time.After(max(d.replicas.config.lookupPeriod-minLookupPeriod, 0)):
		}
	}
}

func (d *discovery) lookUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var lookups sync.WaitGroup
	for i, target := range d.targets {
		if !target.isName() {
			continue
		}
		lookups.Go(func() {
			found, err := d.addresses(ctx, target)
			d.replicas.lookedUp(target, err)
			if err == nil {
				d.found[i] = target.endpoints(found...)
			}
		})
	}
	lookups.Wait()
	if err := d.replace(); err != nil {
		d.replicas.logger.Error(err, "A replica of the planning service cannot be used")
	}
}

// addresses returns the addresses of all A and AAAA records of a target's host. No record at all is an error: a name server that has just
// started may not know the name yet, and the replicas found before are more likely still there.
func (d *discovery) addresses(ctx context.Context, of target) ([]string, error) {
	found, err := d.replicas.config.lookup(ctx, of.host)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("the name has no address: " + of.String())
	}
	addresses := make([]string, 0, len(found))
	for _, ip := range found {
		addresses = append(addresses, net.JoinHostPort(ip.Unmap().String(), of.port))
	}
	slices.Sort(addresses)
	return addresses, nil
}

// sleep waits for a pause. It returns false if the context ends first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
