package planclient

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// target is where replicas are: one at a fixed address, or one at each record of a name.
type target struct {
	host string
	port string
	// isName: every A and AAAA record of the host is a replica.
	isName bool
}

// address is what a replica is known by, and what is dialled.
func (t target) address() string {
	return net.JoinHostPort(t.host, t.port)
}

// String is how it is written.
func (t target) String() string {
	if t.isName {
		return "dns:///" + t.address()
	}
	return "http://" + t.address()
}

// parseTarget reads http://HOST:PORT and dns:///HOST:PORT.
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
		err = errors.New("must be http://HOST:PORT or dns:///HOST:PORT")
	}
	if err != nil {
		return target{}, fmt.Errorf("%q is not the address of a planning service: %w", text, err)
	}
	return read, nil
}

func parseURL(text string) (target, error) {
	wrong := errors.New("must be http://HOST:PORT and nothing more")
	at, err := url.Parse(text)
	if err != nil {
		return target{}, err
	}
	if at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" || strings.Trim(at.Path, "/") != "" {
		return target{}, wrong
	}
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return target{host: at.Hostname(), port: port}, nil
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
	if err != nil {
		return target{}, fmt.Errorf("must be dns:///HOST:PORT; both are needed: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || host == "" || strings.ContainsAny(host, "/ ") {
		return target{}, errors.New("must be dns:///HOST:PORT; both are needed")
	}
	return target{host: host, port: port, isName: true}, nil
}
