package outhttp

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"127.0.0.1": "loopback", "127.255.0.1": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "::ffff:10.1.2.3": "private",
		"fc00::1": "private", "fd00:ec2::254": "private", "fd20:ce::254": "private",
		"100.64.0.1": "shared by a carrier", "100.100.100.200": "shared by a carrier", "100.127.255.255": "shared by a carrier",
		"169.254.169.254": "cloud metadata", "::ffff:169.254.169.254": "cloud metadata", "168.63.129.16": "cloud metadata",
		"169.254.170.2": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "fe80::a9fe:a9fe": "link-local",
		"fec0::1": "site-local", "224.0.0.1": "multicast", "239.1.1.1": "multicast", "ff02::1": "multicast",
		"240.0.0.1": "reserved", "255.255.255.255": "broadcast", "192.0.0.192": "reserved", "192.0.0.8": "reserved",
		"192.0.2.1": "documentation", "198.51.100.1": "documentation", "203.0.113.1": "documentation", "2001:db8::1": "documentation", "3fff::1": "documentation",
		"198.18.0.1": "benchmarking", "198.19.255.255": "benchmarking", "192.88.99.1": "6to4 relay", "2002:7f00:1::": "6to4",
		"2001::1": "reserved", "2001:20::1": "reserved", "::7f00:1": "reserved", "100::1": "reserved", "5f00::1": "reserved", "4000::1": "reserved",
		"64:ff9b::7f00:1": "NAT64 of an address that is loopback", "64:ff9b::a9fe:a9fe": "NAT64 of an address that is cloud metadata",
		"64:ff9b:1::a00:1": "NAT64 of a private network", "64:ff9b:1::808:808": "NAT64 of a private network",

		"8.8.8.8": "", "1.1.1.1": "", "9.255.255.255": "", "11.0.0.0": "", "100.63.255.255": "", "100.128.0.0": "", "172.15.255.255": "", "172.32.0.0": "",
		"126.255.255.255": "", "128.0.0.1": "", "169.253.255.255": "", "192.0.1.1": "", "198.17.255.255": "", "198.20.0.0": "", "223.255.255.255": "",
		"2606:4700::1111": "", "2a00:1450:4001::1": "", "2001:200::1": "", "2001:4860:4860::8888": "", "::ffff:8.8.8.8": "", "64:ff9b::808:808": "",
	} {
		a := netip.MustParseAddr(addr)
		err := Given.Check(a)
		got := ""
		if err != nil {
			got = err.(*BlockedError).Why
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
		if err != nil && !strings.Contains(err.Error(), a.String()) {
			t.Errorf("%s: the error does not name it: %v", addr, err)
		}
		if Own.Check(a) != nil || Policy("").Check(a) == nil && want != "" {
			t.Errorf("%s: the operator may call everything, nobody else may", addr)
		}
	}
	if Given.control("tcp4", "localhost:80", nil) == nil || Given.control("tcp4", "8.8.8.8:443", nil) != nil {
		t.Error("what is no address is not called, a public one is")
	}
}

// The guard looks at the address that a name turned out to have, as it is connected to.
func TestGuardAtDialTime(t *testing.T) {
	t.Parallel()
	f := serve(t, answer("HTTP/1.1 200 OK\r\n\r\n"))
	_, port, _ := net.SplitHostPort(f.addr)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433.", "0x7f.1"} {
		_, err := New(Options{Policy: Given}).Do(within(t, patient), post("http://"+host+":"+port+"/"))
		got := failed(t, err)
		if got.Sent || got.Phase != Blocked && got.Phase != NameNotFound {
			t.Errorf("%s: %v", host, err)
		}
		if got.Phase == Blocked && !strings.Contains(err.Error(), "127.0.0.1 is blocked (loopback)") && !strings.Contains(err.Error(), "::1 is blocked (loopback)") {
			t.Errorf("%s: the error does not name the address: %v", host, err)
		}
	}
	if n := f.requests.Load(); n != 0 {
		t.Errorf("%d requests went through", n)
	}
	_, err := New(Options{Policy: Given}).Do(within(t, patient), post("https://127.0.0.1:"+port+"/"))
	if got := failed(t, err); got.Phase != Blocked {
		t.Errorf("https: %v", err)
	}
	if _, err := New(Options{}).Do(within(t, patient), post(f.url)); err != nil {
		t.Errorf("the operator's own: %v", err)
	}
}
