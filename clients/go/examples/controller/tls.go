package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"

	"nodewise.dev/clients/go/planclient"
)

// secure reads the transport security from the environment. If one of the NODEWISE_TLS variables is set, connections use TLS, with the given
// certificate authorities or else those of the system. The client certificate is read for each connection, so that it may be renewed. If none
// is set, connections are plain text.
func secure() ([]planclient.Option, error) {
	ca, cert, key := os.Getenv("NODEWISE_TLS_CA"), os.Getenv("NODEWISE_TLS_CERT"), os.Getenv("NODEWISE_TLS_KEY")
	var options []planclient.Option
	if os.Getenv("NODEWISE_PLAINTEXT") == "true" {
		options = append(options, planclient.WithPlaintext())
	}
	if cmp.Or(ca, cert, key) == "" {
		return options, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		authorities, err := os.ReadFile(ca) //nolint:gosec // whoever sets the environment says which file
		if err != nil {
			return nil, fmt.Errorf("NODEWISE_TLS_CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("NODEWISE_TLS_CA: %s holds no certificate in PEM form", ca)
		}
	}
	if cert != "" || key != "" {
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			return nil, fmt.Errorf("NODEWISE_TLS_CERT and NODEWISE_TLS_KEY: %w", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			own, err := tls.LoadX509KeyPair(cert, key)
			return &own, err
		}
	}
	return append(options, planclient.WithTransportCredentials(credentials.NewTLS(config))), nil
}
