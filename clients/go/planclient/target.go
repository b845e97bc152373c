package planclient

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// target is one server that [New] was given: a replica at a fixed address, or a replica at each address record of a name.
type target struct {
	host string
	port string
	// scheme is http, https or dns. With dns every A and AAAA record of the host is a replica.
	scheme string
	// hasDefaultPort is true if no port was written, so that the port is 80 or 443.
	hasDefaultPort bool
}

// isName reports whether the target must be looked up.
func (t target) isName() bool { return t.scheme == "dns" }

// address is the host and port.
func (t target) address() string {
	return net.JoinHostPort(t.host, t.port)
}

// String is the target as the user writes it.
func (t target) String() string {
	if t.isName() {
		return "dns:///" + t.address()
	}
	return t.scheme + "://" + t.address()
}

// isLoopback reports whether the target is on this machine, by its text alone. Names other than localhost are not looked up.
func (t target) isLoopback() bool {
	address, err := netip.ParseAddr(t.host)
	if err != nil {
		return strings.EqualFold(t.host, "localhost")
	}
	return address.Is4() && address.IsLoopback() || address == netip.IPv6Loopback()
}

// suits returns an error if the target contradicts the configured transport security: https without credentials, http with credentials, or
// plain text off loopback without [WithPlaintext].
func (t target) suits(config *config) error {
	isSecure := config.isSecure()
	switch {
	case t.scheme == "https" && !isSecure:
		return fmt.Errorf("%s asks for TLS, for which there are no credentials: give some with WithTransportCredentials, or write "+
			"http://%s for plain text", t, t.address())
	case t.scheme == "http" && isSecure:
		return fmt.Errorf("%s asks for plain text, and there are transport credentials: write https://%s for TLS", t, t.address())
	case !isSecure && !config.plaintext && !t.isLoopback():
		return fmt.Errorf("%s is not on loopback, and would be asked in plain text: %s, or WithPlaintext where something else protects it",
			t, t.secured())
	default:
		return nil
	}
}

// secured is advice for using TLS.
func (t target) secured() string {
	if t.isName() {
		return "give credentials with WithTransportCredentials"
	}
	return fmt.Sprintf("write https://%s and give credentials with WithTransportCredentials", t.address())
}

// unsecured is advice for using plain text.
func (t target) unsecured() string {
	if t.isName() {
		return "leave WithTransportCredentials out"
	}
	return fmt.Sprintf("write http://%s and leave WithTransportCredentials out", t.address())
}

// endpoints are the replicas of the target at these addresses.
func (t target) endpoints(addresses ...string) []endpoint {
	endpoints := make([]endpoint, 0, len(addresses))
	for _, address := range addresses {
		endpoints = append(endpoints, endpoint{address: address, of: t})
	}
	return endpoints
}

// endpoint is the address of a replica.
type endpoint struct {
	// address identifies the replica, and is what the client dials.
	address string
	// of is the target that the address belongs to. The replica's certificate must be one for the target's host.
	of target
}

// parseTarget reads http://HOST:PORT, https://HOST:PORT and dns:///HOST:PORT.
func parseTarget(text string) (target, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	var read target
	var err error
	switch scheme {
	case "http", "https":
		read, err = parseURL(text)
	case "dns":
		read, err = parseName(rest)
	default:
		err = errors.New("must be http://HOST:PORT, https://HOST:PORT or dns:///HOST:PORT; a nodewise-server listens on port 7443 where " +
			"nothing else was set")
	}
	if err != nil {
		return target{}, fmt.Errorf("%q is not the address of a planning service: %w", text, err)
	}
	return read, nil
}

func parseURL(text string) (target, error) {
	at, err := url.Parse(text)
	if err != nil {
		return target{}, err
	}
	if at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" || strings.Trim(at.Path, "/") != "" {
		return target{}, fmt.Errorf("must be %s://HOST:PORT and nothing more", at.Scheme)
	}
	read := target{host: at.Hostname(), port: at.Port(), scheme: at.Scheme}
	if read.port == "" {
		read.hasDefaultPort, read.port = true, map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return read, nil
}

func parseName(rest string) (target, error) {
	name := rest
	if after, hasAuthority := strings.CutPrefix(rest, "//"); hasAuthority {
		var isSystem bool
		if name, isSystem = strings.CutPrefix(after, "/"); !isSystem {
			return target{}, errors.New("names are looked up as the system does it: write dns:///HOST:PORT, with three slashes")
		}
	}
	host, port, err := net.SplitHostPort(name)
	var wrong *net.AddrError
	switch {
	case errors.As(err, &wrong) && wrong.Err == "missing port in address":
		return target{}, fmt.Errorf("the port is missing: write dns:///%s:7443, or another port where the planning service listens there", name)
	case err != nil:
		return target{}, fmt.Errorf("must be dns:///HOST:PORT; both are needed: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || host == "" || strings.ContainsAny(host, "/ ") {
		return target{}, errors.New("must be dns:///HOST:PORT; both are needed")
	}
	return target{host: host, port: port, scheme: "dns"}, nil
}
