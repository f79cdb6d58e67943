package http

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ParseProxies reads the addresses and networks of proxies, separated by commas.
func ParseProxies(text string) (proxies []netip.Prefix, err error) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		network, err := netip.ParsePrefix(entry)
		if address, single := netip.ParseAddr(entry); single == nil {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q must be an address or a network, such as 10.0.0.0/8", entry)
		}
		proxies = append(proxies, network)
	}
	return proxies, nil
}

// client is the address that a request is counted for: that of the connection, or, where a trusted proxy holds that, the right-most one in
// X-Forwarded-For that is no proxy's. The zero address stands for what cannot be read.
func (l *limiter) client(r *http.Request) netip.Addr {
	address := parseAddress(r.RemoteAddr)
	for i := len(r.Header["X-Forwarded-For"]) - 1; i >= 0; i-- {
		list := r.Header["X-Forwarded-For"][i]
		for list != "" && l.trusts(address) {
			comma := strings.LastIndexByte(list, ',')
			further := parseAddress(strings.TrimSpace(list[comma+1:]))
			if !further.IsValid() {
				return network(address)
			}
			address, list = further, list[:max(comma, 0)]
		}
	}
	return network(address)
}

func (l *limiter) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// parseAddress reads an address with a port or without.
func parseAddress(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}

// network is the address itself in IPv4, and its /64 in IPv6, which one client has for itself.
func network(address netip.Addr) netip.Addr {
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().Addr()
	}
	return address
}
