package esdbtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// RequireCredentials restricts reads and appends to one user. Gossip and the version stay public, as with a real
// server. A change of credentials does not end existing subscriptions.
func (s *Server) RequireCredentials(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// admit refuses calls to streams with missing or wrong credentials, each with the code of a real server.
func (s *Server) admit(ctx context.Context, method string) error {
	s.mu.Lock()
	user, password := s.user, s.password
	s.mu.Unlock()
	if user == "" || !strings.HasPrefix(method, "/event_store.client.streams.") {
		return nil
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	switch got := headers.Get("authorization"); {
	case len(got) == 0:
		return status.Error(codes.PermissionDenied, "Access Denied")
	case got[0] != "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)):
		return status.Error(codes.Unauthenticated, "Unauthenticated")
	}
	return nil
}

// selfSigned creates a certificate for the loopback address.
func selfSigned(t testing.TB) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		DNSNames:     []string{"localhost"},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		NextProtos:   []string{"h2"},
		MinVersion:   tls.VersionTLS12,
	}
}
