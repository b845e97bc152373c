package analysis

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// address is whom a policy asks. What is checked is what is called: both use these fields, and no text of the policy.
type address struct {
	// host is in lower case, and without brackets.
	host string
	port string
	tls  bool
	// path begins with a slash, and has the query.
	path string
}

// String is HOST:PORT. Paths and queries may have secrets.
func (a *address) String() string { return net.JoinHostPort(a.host, a.port) }

// isLoopback reports whether the host is this machine, whatever a name server says.
func (a *address) isLoopback() bool {
	at, err := netip.ParseAddr(a.host)
	return a.host == "localhost" || err == nil && at.IsLoopback()
}

func addressOfURL(text string) (*address, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no URL", text)
	}
	made := &address{tls: parsed.Scheme == "https", path: parsed.EscapedPath()}
	switch {
	case !made.tls && parsed.Scheme != "http":
		return nil, fmt.Errorf("%q must begin with http:// or https://", text)
	case parsed.User != nil:
		return nil, errors.New("a URL with a user is not called: use a credential")
	}
	if !strings.HasPrefix(made.path, "/") {
		made.path = "/" + made.path
	}
	if parsed.RawQuery != "" {
		made.path += "?" + parsed.RawQuery
	}
	port := parsed.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[made.tls]
	}
	return made, made.set(parsed.Host, parsed.Hostname(), port)
}

func addressOfHostPort(text string, tls bool) (*address, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not HOST:PORT", text)
	}
	made := &address{tls: tls, path: "/"}
	return made, made.set(text, host, port)
}

// set sets the host and the port that were read of a text. Nothing of the text may be read differently by anybody.
func (a *address) set(text, host, port string) error {
	a.host, a.port = lower(host), port
	if !isHost(a.host) {
		return fmt.Errorf("%q is no host", host)
	}
	if !isPort(port) {
		return fmt.Errorf("%q is no port", port)
	}
	if text = lower(text); text != strings.TrimSuffix(a.String(), ":"+port) && text != a.String() {
		return fmt.Errorf("%q is neither HOST nor HOST:PORT", text)
	}
	return nil
}

// lower makes ASCII letters lower case. In Unicode there are other letters whose lower case is an ASCII letter, such as the Kelvin sign.
func lower(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter >= 'A' && letter <= 'Z' {
			return letter - 'A' + 'a'
		}
		return letter
	}, text)
}

var hostName = regexp.MustCompile(`^[a-z0-9._-]{1,253}$`)

func isHost(host string) bool {
	at, err := netip.ParseAddr(host)
	return hostName.MatchString(host) || err == nil && at.Is6() && at.Zone() == ""
}

func isPort(port string) bool {
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0 && strconv.FormatUint(number, 10) == port
}

// allowedHost is a host that may be called, with any port if port is empty, and the credential that it may get.
type allowedHost struct {
	host, port, credential string
}

// credentialName is the name of one file of a folder, and of none that the kubelet makes for itself.
var credentialName = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+|-+[a-z0-9]+)*$`)

// parseHost reads HOST[:PORT][=CREDENTIAL]. An IPv6 address is in brackets.
func parseHost(text string) (allowedHost, error) {
	place, credential, names := strings.Cut(text, "=")
	if names && (len(credential) > 253 || !credentialName.MatchString(credential)) {
		return allowedHost{}, fmt.Errorf("%q is no name of a credential: lower-case letters, digits, hyphens and dots", credential)
	}
	place = lower(place)
	host, port := place, ""
	if at := strings.LastIndexByte(place, ':'); at >= 0 && !strings.HasSuffix(place, "]") {
		host, port = place[:at], place[at+1:]
		if !isPort(port) {
			return allowedHost{}, fmt.Errorf("%q is no port", port)
		}
	}
	bare, isBracketed := strings.CutPrefix(host, "[")
	if isBracketed {
		bare = strings.TrimSuffix(bare, "]")
	}
	if !isHost(bare) || isBracketed != strings.Contains(bare, ":") || isBracketed && host != "["+bare+"]" {
		return allowedHost{}, fmt.Errorf(
			"%q is no host: write HOST or HOST:PORT, without a scheme, a path or a user; an IPv6 address in brackets", host)
	}
	return allowedHost{bare, port, credential}, nil
}

// String is HOST or HOST:PORT, as in a snapshot.
func (h allowedHost) String() string {
	host := h.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if h.port == "" {
		return host
	}
	return host + ":" + h.port
}

func (h allowedHost) allows(address *address) bool {
	return h.host == address.host && (h.port == "" || h.port == address.port)
}

func checkHost(hosts []allowedHost, address *address) error {
	if slices.ContainsFunc(hosts, func(host allowedHost) bool { return host.allows(address) }) {
		return nil
	}
	return fmt.Errorf("the executor may not call %s: whoever runs it allows hosts", address)
}

// checkCredential returns an error if the operator does not allow that the address gets this credential.
func checkCredential(hosts []allowedHost, address *address, name string) error {
	isAllowed := slices.ContainsFunc(hosts, func(host allowedHost) bool { return host.allows(address) && host.credential == name })
	switch {
	case !isAllowed:
		return fmt.Errorf("credential %q may not be sent there: whoever runs the executor allows it with %s=%s", name, address, name)
	case !address.tls && !address.isLoopback():
		return fmt.Errorf("credential %q is not sent in plain text: use https", name)
	default:
		return nil
	}
}
