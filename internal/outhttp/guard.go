package outhttp

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Policy says which addresses may be called.
type Policy string

// The policies.
const (
	Own   Policy = "own"   // addresses that the operator wrote down: every one, as it is their own network
	Given Policy = "given" // addresses given by others: public ones only
)

// BlockedError says that a policy does not allow an address.
type BlockedError struct {
	Addr netip.Addr
	Why  string // what kind of address it is
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s is blocked (%s): only public addresses may be called", e.Addr, e.Why)
}

// Check returns a *BlockedError if p does not allow an address.
func (p Policy) Check(a netip.Addr) error {
	if p == Own {
		return nil
	}
	if why := notPublic(a); why != "" {
		return &BlockedError{Addr: a, Why: why}
	}
	return nil
}

// control is called with each address once its name is looked up and before it is connected to, so that a name that
// changes its address between a check and the connection gains nothing.
func (p Policy) control(_, address string, _ syscall.RawConn) error {
	if p == Own {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address: it is not called", address)
	}
	return p.Check(ap.Addr())
}

type kind struct {
	prefix netip.Prefix
	why    string
}

// The addresses that are not public, from the special-purpose registries of IANA, and where clouds keep what machines
// may know of themselves. 100.100.100.200, 192.0.0.192 and fd00:ec2::254 lie in ranges that are listed.
var special = []kind{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64 of a private network"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo, benchmarking, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3") // all that is given out of IPv6
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// notPublic returns what kind of address a is, empty if it is a public one. An address that leads to another is judged
// by that.
func notPublic(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		if why := notPublic(netip.AddrFrom4([4]byte(b[12:]))); why != "" {
			return "NAT64 of an address that is " + why
		}
		return ""
	}
	for _, k := range special {
		if k.prefix.Contains(a) {
			return k.why
		}
	}
	if !a.Is4() && !globalUnicast.Contains(a) {
		return "reserved"
	}
	return ""
}
