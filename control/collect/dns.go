package collect

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Resolver looks names up; [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DNS is every A and AAAA record of a name, with one port. It is asked again
// every Every. A look-up that fails, also with "no such host", leaves the list
// as it was: a name server in trouble must not empty a pool.
type DNS struct {
	Name     string
	Port     uint16
	Every    time.Duration
	Resolver Resolver
}

// Run resolves until ctx ends.
func (d DNS) Run(ctx context.Context, emit func([]Member), report func(error)) {
	var last []Member
	lastErr := ""
	known := false
	for {
		members, err := d.lookup(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if err.Error() != lastErr {
				report(err)
			}
			lastErr = err.Error()
		case !known || !slices.EqualFunc(members, last, func(a, b Member) bool { return a.equal(&b) }):
			emit(members)
			known, last, lastErr = true, members, ""
		default:
			lastErr = ""
		}
		if !sleep(ctx, d.Every) {
			return
		}
	}
}

func (d DNS) lookup(ctx context.Context) ([]Member, error) {
	ctx, cancel := context.WithTimeout(ctx, max(d.Every, time.Second))
	defer cancel()
	addrs, err := d.Resolver.LookupNetIP(ctx, "ip", d.Name)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", d.Name, err)
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare) // servers rotate them
	members := make([]Member, len(addrs))
	for i, a := range addrs {
		members[i].Address = netip.AddrPortFrom(a, d.Port).String()
	}
	return normal(members), nil
}

// sleep waits for d and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
