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

// secure speaks TLS to the service if the environment has something to say about it: the authorities that it must have its certificate
// from, or those of the system, and a certificate to show to it. That one is read for each connection, so that it may change. Without any
// of them plain text is spoken, off loopback only where the environment says so.
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
