package analysis

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"nodewise.dev/clients/go/internal/testkit"
)

// addressVector is a vector of analysis_addresses.json.
type addressVector struct {
	Why string
	// Flag is a value that allows a host: it is read as Host and Credential.
	Flag *string
	Host string
	// URL or Authority is what a policy names.
	URL, Authority *string
	TLS            bool
	Hosts          []string
	Credential     string
	Asks           *struct {
		Host, Path string
		Port       int
		TLS        bool
	}
	Refused string
}

// L-32: whom a policy may have asked, by the vectors that all executors share.
func TestAddresses(t *testing.T) {
	for _, vector := range testkit.Vectors[[]addressVector](t, "analysis_addresses.json") {
		t.Run(vector.Why, func(t *testing.T) {
			if vector.Flag != nil {
				vector.checkFlag(t)
				return
			}
			to, refused := vector.refusal(t)
			if refused != vector.Refused {
				t.Fatalf("refused is %q, want %q", refused, vector.Refused)
			}
			if refused != "" {
				return
			}
			host, port := strings.Trim(vector.Asks.Host, "[]"), strconv.Itoa(vector.Asks.Port)
			if to.host != host || to.port != port || to.tls != vector.Asks.TLS || to.path != vector.Asks.Path || to.String() != net.JoinHostPort(host, port) {
				t.Errorf("asks %+v", to)
			}
		})
	}
}

func (v *addressVector) checkFlag(t *testing.T) {
	t.Helper()
	host, err := parseHost(*v.Flag)
	switch {
	case (err != nil) != (v.Refused == "flag"):
		t.Errorf("got %v, %v", host, err)
	case err == nil && (host.String() != v.Host || host.credential != v.Credential):
		t.Errorf("got %s with %q", host, host.credential)
	}
}

// refusal returns what the vector asks, or for which reason it is refused.
func (v *addressVector) refusal(t *testing.T) (to *address, refused string) {
	t.Helper()
	var hosts []allowedHost
	for _, text := range v.Hosts {
		host, err := parseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, host)
	}
	var err error
	if v.URL != nil {
		to, err = addressOfURL(*v.URL)
	} else {
		to, err = addressOfHostPort(*v.Authority, v.TLS)
	}
	if err != nil {
		return nil, "address"
	}
	if checkHost(hosts, to) != nil {
		return to, "host"
	}
	if v.Credential == "" {
		return to, ""
	}
	switch err := checkCredential(hosts, to, v.Credential); {
	case err == nil:
		return to, ""
	case strings.Contains(err.Error(), "plain text"):
		return to, "plain_text"
	default:
		return to, "credential"
	}
}
