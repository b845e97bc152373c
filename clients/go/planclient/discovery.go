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
	// shortestLookup is the shortest time between two look-ups, however much fails.
	shortestLookup = time.Second
	lookupTimeout  = 10 * time.Second
)

func systemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// discovery keeps the set of replicas up to date: each target tells its addresses, and together they are the set.
type discovery struct {
	targets  []target
	replicas *replicas
	// told is what each target said last.
	told [][]endpoint
	// gone is told of replicas that are no more.
	gone func([]*replica)
}

// start takes in the addresses that need not be looked up.
func (d *discovery) start() error {
	d.told = make([][]endpoint, len(d.targets))
	for i, target := range d.targets {
		if !target.isName() {
			d.told[i] = target.endpoints(target.address())
		}
	}
	return d.replace()
}

func (d *discovery) replace() error {
	gone, err := d.replicas.replace(slices.Concat(d.told...))
	if len(gone) > 0 {
		d.gone(gone)
	}
	return err
}

// follow looks the names up, again and again.
func (d *discovery) follow(ctx context.Context) {
	hasNames := slices.ContainsFunc(d.targets, func(t target) bool { return t.isName() })
	for hasNames && ctx.Err() == nil {
		d.lookUp(ctx)
		if !sleep(ctx, shortestLookup) {
			return
		}
		select {
		case <-ctx.Done():
		case <-d.replicas.doubts:
		case <-time.After(max(d.replicas.config.lookupPeriod-shortestLookup, 0)):
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
			d.replicas.searched(target, err)
			if err == nil {
				d.told[i] = target.endpoints(found...)
			}
		})
	}
	lookups.Wait()
	if err := d.replace(); err != nil {
		d.replicas.logger.Error(err, "A replica of the planning service cannot be used")
	}
}

// addresses are every A and AAAA record. No record at all is taken for a failure: a name server that has just started knows
// nobody, and who was known is more likely still there.
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

// sleep waits, unless the context ends before.
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
