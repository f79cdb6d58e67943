package quota

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
		if network.Addr().Is4In6() { // addresses of connections are unmapped
			if network.Bits() < 96 {
				return nil, fmt.Errorf("%q must be written as a network of IPv4, such as 10.0.0.0/8", entry)
			}
			network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
		}
		proxies = append(proxies, network)
	}
	return proxies, nil
}

// clientAddress returns the address that a request is counted for: the connection's or, behind a trusted proxy, the
// right-most address in X-Forwarded-For that is not a proxy. It returns the zero address if that is unreadable.
func clientAddress(r *http.Request, proxies []netip.Prefix) netip.Addr {
	address := parseAddress(r.RemoteAddr)
	for i := len(r.Header["X-Forwarded-For"]) - 1; i >= 0; i-- {
		list := r.Header["X-Forwarded-For"][i]
		for list != "" && contain(proxies, address) {
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

// FromProxy reports whether a trusted proxy holds the connection of a request.
func FromProxy(r *http.Request, proxies []netip.Prefix) bool {
	return contain(proxies, parseAddress(r.RemoteAddr))
}

func contain(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}

// parseAddress reads an address with or without a port.
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

// Prefix lengths by which clients are counted together: see network, site and wide.
const (
	networkBits = 64 // IPv6
	siteBits    = 48 // IPv6
	wideBits    = 24 // IPv4
)

// network returns an IPv4 address itself, or an IPv6 address's /64, which usually belongs to one client.
func network(address netip.Addr) netip.Addr {
	if address.Is6() {
		return netip.PrefixFrom(address, networkBits).Masked().Addr()
	}
	return address
}

// site returns an IPv4 address itself, or an IPv6 address's /48, the most that a client usually controls.
func site(address netip.Addr) netip.Prefix {
	if address.Is6() {
		return wide(address)
	}
	return netip.PrefixFrom(address, address.BitLen())
}

func wide(address netip.Addr) netip.Prefix {
	bits := wideBits
	if address.Is6() {
		bits = siteBits
	}
	prefix, _ := address.Prefix(bits) // the zero prefix for the zero address
	return prefix
}
