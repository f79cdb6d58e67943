// Package mailtest is a small SMTP server for tests.
package mailtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Mail is a received mail.
type Mail struct {
	From, To, Subject, Text string
	Header                  mail.Header
	TLS                     bool
	User                    string // the signed-in sender
}

// Options are the requirements of a server.
type Options struct {
	TLS            bool // offer STARTTLS
	Implicit       bool // TLS from the first byte
	User, Password string
	// Refuse is called for each mail with its number, from 1. Calls may be concurrent.
	Refuse func(n int) error
	// RefuseRecipient, if set, is called for each recipient.
	RefuseRecipient func(address string) error
}

// Server is a running server. It stops with the test.
type Server struct {
	Addr  string
	Roots *x509.CertPool // certificates to trust

	o     Options
	mu    sync.Mutex
	mails []Mail
	tries int
	more  chan struct{} // closed when a mail arrives
}

// New starts a server on the loopback interface.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{o: o, more: make(chan struct{}), Roots: x509.NewCertPool()}
	certified := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1 and example.com
	config := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	s.Roots.AddCert(certified.Certificate())
	certified.Close()

	server := smtp.NewServer(
		smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{s: s, c: c}, nil }),
	)
	server.Domain, server.AllowInsecureAuth = "localhost", false
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	server.ErrorLog = quiet{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Addr = listener.Addr().String()
	if o.Implicit {
		listener = tls.NewListener(listener, config)
	} else if o.TLS {
		server.TLSConfig = config
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = listener.Close() // Close does not know it before Serve starts
		<-done
	})
	return s
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// Mails returns all mails so far.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Wait returns the nth mail to an address, from 1. It waits up to a minute.
func (s *Server) Wait(t testing.TB, to string, n int) Mail {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		more, seen := s.more, 0
		for _, m := range s.mails {
			if strings.EqualFold(m.To, to) {
				if seen++; seen == n {
					s.mu.Unlock()
					return m
				}
			}
		}
		s.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("mail %d to %s did not arrive", n, to)
		}
	}
}

type session struct {
	s    *Server
	c    *smtp.Conn
	user string
	mail Mail
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (c *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != c.s.o.User || password != c.s.o.Password {
			return errors.New("wrong user or password")
		}
		c.user = user
		return nil
	}), nil
}

func (c *session) Mail(from string, _ *smtp.MailOptions) error {
	if c.s.o.User != "" && c.user == "" {
		return smtp.ErrAuthRequired
	}
	_, encrypted := c.c.TLSConnectionState()
	c.mail = Mail{From: from, TLS: encrypted, User: c.user}
	return nil
}

func (c *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.mail.To = to
	if c.s.o.RefuseRecipient != nil {
		return c.s.o.RefuseRecipient(to)
	}
	return nil
}

func (c *session) Data(r io.Reader) error {
	message, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body := message.Body
	if message.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	c.mail.Header, c.mail.Text = message.Header, strings.ReplaceAll(string(text), "\r\n", "\n")
	if c.mail.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		return err
	}
	c.s.mu.Lock()
	c.s.tries++
	n := c.s.tries
	c.s.mu.Unlock()
	if c.s.o.Refuse != nil {
		if err := c.s.o.Refuse(n); err != nil {
			return err
		}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.mails = append(c.s.mails, c.mail)
	close(c.s.more)
	c.s.more = make(chan struct{})
	return nil
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }
