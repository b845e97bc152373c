package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"

	"nodewise.dev/clients/go/planclient"
)

// secure speaks TLS to the service if $NODEWISE_TLS_CA names a file with the authorities that it must have its certificate from. If it
// wants to know who asks, $NODEWISE_TLS_CERT and $NODEWISE_TLS_KEY are read for each connection, so that they may change.
func secure() ([]planclient.Option, error) {
	path := os.Getenv("NODEWISE_TLS_CA")
	if path == "" {
		return nil, nil
	}
	authorities, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("NODEWISE_TLS_CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("NODEWISE_TLS_CA: %s holds no certificate in PEM form", path)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if cert, key := os.Getenv("NODEWISE_TLS_CERT"), os.Getenv("NODEWISE_TLS_KEY"); cert != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			own, err := tls.LoadX509KeyPair(cert, key)
			return &own, err
		}
	}
	return []planclient.Option{planclient.WithTransportCredentials(credentials.NewTLS(config))}, nil
}
