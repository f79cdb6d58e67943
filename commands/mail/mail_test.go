package mail

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"flagledger/commands/mail/mailtest"
	"flagledger/commands/notify"
)

var letter = notify.Mail{
	To:      "ada@example.com",
	Subject: "Schlüssel",
	Text:    "Größe\nhttp://127.0.0.1:8080/reset-password?token=" + strings.Repeat("0123456789", 9) + "=\n",
}

func open(t *testing.T, url string, server *mailtest.Server) *Server {
	t.Helper()
	s, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	s.roots = server.Roots
	return s
}

func TestMailsArrive(t *testing.T) {
	account := mailtest.Options{User: "flags", Password: "p@ss:word"}
	withTLS, implicit := account, account
	withTLS.TLS, implicit.Implicit = true, true
	for name, c := range map[string]struct {
		o         mailtest.Options
		url       func(addr string) string
		encrypted bool
	}{
		"STARTTLS":          {withTLS, func(addr string) string { return "smtp://flags:p%40ss%3Aword@" + addr + "?from=flags@example.com" }, true},
		"TLS":               {implicit, func(addr string) string { return "smtps://flags:p%40ss%3Aword@" + addr + "?from=flags@example.com" }, true},
		"on this machine":   {mailtest.Options{}, func(addr string) string { return "smtp://" + addr + "?from=flags@example.com" }, false},
		"with a name":       {mailtest.Options{}, func(addr string) string { return "smtp://" + addr + "/?from=Flags+%3Cflags%40example.com%3E" }, false},
		"without a sign-in": {mailtest.Options{TLS: true}, func(addr string) string { return "smtp://" + addr + "?from=flags@example.com" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.New(t, c.o)
			if err := open(t, c.url(server.Addr), server).Send(t.Context(), letter); err != nil {
				t.Fatal(err)
			}
			got := server.Mails()
			if len(got) != 1 {
				t.Fatalf("%d mails", len(got))
			}
			m := got[0]
			if m.From != "flags@example.com" || m.To != letter.To || m.Subject != letter.Subject || m.Text != letter.Text ||
				m.TLS != c.encrypted ||
				m.User != c.o.User {
				t.Errorf("got %+v", m)
			}
			if m.Header.Get("Message-Id") == "" || m.Header.Get("Date") == "" ||
				m.Header.Get("Auto-Submitted") != "auto-generated" {
				t.Errorf("headers %v", m.Header)
			}
		})
	}
}

func TestUserMayBeTheSender(t *testing.T) {
	s, err := Open("smtps://flags%40example.com:secret@mail.example.com")
	if err != nil || s.from.Address != "flags@example.com" || s.port != 465 || !s.implicit {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err = Open("smtp://mail.example.com?from=a@b.c"); err != nil || s.port != 587 || s.implicit {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestNothingIsSentUnprotected(t *testing.T) {
	plain := mailtest.New(t, mailtest.Options{})
	elsewhere := open(t, "smtp://"+plain.Addr+"?from=flags@example.com", plain)
	far := *elsewhere
	far.host = strings.Replace(far.host, "127.0.0.1", "localhost.", 1) // the same machine under a different name
	if err := far.Send(t.Context(), letter); err == nil {
		t.Error("a mail was sent to another machine without TLS")
	}
	trusted := mailtest.New(t, mailtest.Options{TLS: true})
	stranger := open(t, "smtp://"+trusted.Addr+"?from=flags@example.com", trusted)
	stranger.roots = nil
	if err := stranger.Send(t.Context(), letter); err == nil {
		t.Error("a mail was sent to a server with a certificate of nobody's")
	}
	if n := len(plain.Mails()) + len(trusted.Mails()); n != 0 {
		t.Errorf("%d mails", n)
	}
}

// An endless answer of a server does not fill the memory.
func TestAnAnswerWithoutEndIsGivenUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	const most = 64 << 20
	sent := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			sent <- most
			return
		}
		defer func() { _ = conn.Close() }()
		n, err := conn.Write([]byte("220 mail.example.com\r\n"))
		for line := []byte("250-" + strings.Repeat("x", 60_000) + "\r\n"); err == nil && n < most; {
			var more int
			more, err = conn.Write(line)
			n += more
		}
		sent <- n
	}()
	s, err := Open("smtp://" + listener.Addr().String() + "?from=flags@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), letter); err == nil {
		t.Error("a mail was sent")
	}
	if n := <-sent; n >= most {
		t.Errorf("%d MiB of an answer were read", n>>20)
	}
}

func TestRefusals(t *testing.T) {
	busy := mailtest.New(t, mailtest.Options{Refuse: func(n int) error {
		if n < 2 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "come back later"}
		}
		return nil
	}})
	patient := open(t, "smtp://"+busy.Addr+"?from=a@example.com", busy)
	if err := patient.Send(t.Context(), letter); err == nil || errors.Is(err, notify.ErrRecipientRefused) ||
		errors.Is(err, notify.ErrRecipientDeferred) {
		t.Errorf("a busy server: %v", err)
	}
	if err := patient.Send(t.Context(), letter); err != nil || len(busy.Mails()) != 1 {
		t.Errorf("a busy server that is asked once more: %v", err)
	}
	tries := 0
	final := mailtest.New(t, mailtest.Options{Refuse: func(n int) error {
		tries = n
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox: " + letter.To}
	}})
	err := open(t, "smtp://"+final.Addr+"?from=a@example.com", final).Send(t.Context(), letter)
	if !errors.Is(err, notify.ErrRecipientRefused) || tries != 1 {
		t.Errorf("%d tries of what was refused for good: %v", tries, err)
	}
	if text := fmt.Sprint(
		err,
	); !strings.Contains(text, "550") || !strings.Contains(text, "5.1.1") || !strings.Contains(text, "for good") ||
		strings.Contains(text, "@") {
		t.Errorf("the error says %q", text)
	}
	locked := mailtest.New(t, mailtest.Options{TLS: true, User: "flags", Password: "right"})
	err = open(t, "smtp://flags:hunter22@"+locked.Addr+"?from=a@example.com", locked).Send(t.Context(), letter)
	if err == nil || !strings.Contains(err.Error(), "454") || strings.Contains(err.Error(), "wrong user") ||
		len(locked.Mails()) != 0 {
		t.Errorf("a wrong password: %v", err)
	}
	gone, err := Open("smtp://127.0.0.1:1?from=a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if gone.Send(t.Context(), letter) == nil {
		t.Error("a server that is not there took a mail")
	}
}

// A reply about the recipient concerns only that mail, and is final if the mailbox does not exist. Other replies
// concern every mail.
func TestWhoARefusalConcerns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code     int
		status   smtp.EnhancedCode
		want     error // nil if it concerns every mail
		atTheEnd bool  // about the mail, not about its recipient
	}{
		{550, smtp.EnhancedCode{5, 1, 1}, notify.ErrRecipientRefused, false},
		{550, smtp.EnhancedCode{5, 1, 1}, notify.ErrRecipientRefused, true},
		{552, smtp.EnhancedCode{5, 2, 2}, notify.ErrRecipientRefused, false},
		{550, smtp.NoEnhancedCode, notify.ErrRecipientDeferred, false}, // Exim's reply that it does not relay
		{450, smtp.EnhancedCode{4, 2, 1}, notify.ErrRecipientDeferred, false},
		{452, smtp.EnhancedCode{4, 2, 2}, notify.ErrRecipientDeferred, false},
		{450, smtp.NoEnhancedCode, notify.ErrRecipientDeferred, false},
		{550, smtp.EnhancedCode{5, 4, 1}, notify.ErrRecipientRefused, false}, // Microsoft: no such mailbox
		// the server does not support the letters of the address
		{553, smtp.EnhancedCode{5, 6, 7}, notify.ErrRecipientRefused, false},
		// not allowed to relay, or to write to this mailbox
		{554, smtp.EnhancedCode{5, 7, 1}, notify.ErrRecipientDeferred, false},
		{450, smtp.EnhancedCode{4, 1, 2}, notify.ErrRecipientDeferred, false}, // the domain is not found
		{452, smtp.EnhancedCode{4, 3, 1}, notify.ErrRecipientDeferred, false},
		{452, smtp.EnhancedCode{4, 2, 2}, notify.ErrRecipientDeferred, true},
		{550, smtp.EnhancedCode{5, 1, 8}, nil, false}, // unknown sender
		{550, smtp.EnhancedCode{5, 1, 8}, nil, true},
		{450, smtp.EnhancedCode{4, 1, 8}, nil, false},
		{550, smtp.NoEnhancedCode, nil, true},
		{452, smtp.EnhancedCode{4, 3, 1}, nil, true}, // the disk is full
		{554, smtp.EnhancedCode{5, 7, 1}, nil, true}, // the text was classified as spam
	} {
		refusal := &smtp.SMTPError{Code: c.code, EnhancedCode: c.status, Message: "no, " + letter.To}
		o := mailtest.Options{RefuseRecipient: func(string) error { return refusal }}
		if c.atTheEnd {
			o = mailtest.Options{Refuse: func(int) error { return refusal }}
		}
		server := mailtest.New(t, o)
		err := open(t, "smtp://"+server.Addr+"?from=a@example.com", server).Send(t.Context(), letter)
		for _, kind := range []error{notify.ErrRecipientRefused, notify.ErrRecipientDeferred} {
			if errors.Is(err, kind) != (kind == c.want) {
				t.Errorf("%d %v, at the end %v: %v; want %v", c.code, c.status, c.atTheEnd, err, c.want)
			}
		}
		if err == nil || strings.Contains(err.Error(), "@") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestHeadersCannotBeForged(t *testing.T) {
	server := mailtest.New(t, mailtest.Options{})
	s := open(t, "smtp://"+server.Addr+"?from=a@example.com", server)
	forged := letter
	forged.Subject = "hello\r\nBcc: eve@example.com\r\n\r\nbody"
	if err := s.Send(t.Context(), forged); err == nil {
		m := server.Mails()[0]
		if m.Header.Get("Bcc") != "" || m.To != letter.To || m.Text != letter.Text {
			t.Errorf("got %+v", m)
		}
	}
	for _, to := range []string{"", "nobody", "a@example.com\r\nRCPT TO:<eve@example.com>"} {
		forged := letter
		forged.To = to
		if s.Send(t.Context(), forged) == nil {
			t.Errorf("a mail was sent to %q", to)
		}
	}
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"mail.example.com", "http://flags:hunter22@mail.example.com?from=a@b.c", "smtp://?from=a@b.c", "smtp://flags:hunter22@mail.example.com:0?from=a@b.c",
		"smtp://flags:hunter22@mail.example.com:port?from=a@b.c", "smtp://flags:hunter22@mail.example.com", "smtp://mail.example.com?from=nobody",
		"smtp://flags@mail.example.com?from=a@b.c", "smtp://:hunter22@mail.example.com?from=a@b.c", "smtp://mail.example.com?from=a@b.c&from=d@e.f",
		"smtp://mail.example.com?from=a@b.c&tls=off", "smtp://mail.example.com/path?from=a@b.c", "smtp://flags:hunter22@mail.example.com?%zz", "smtp://flags:hunter22%zz@host",
	} {
		if _, err := Open(url); err == nil || errors.Unwrap(err) != nil || strings.Contains(err.Error(), "hunter22") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	if err := ToLog(log, true).Send(t.Context(), letter); err != nil ||
		!strings.Contains(out.String(), "reset-password?token=") {
		t.Errorf("development does not show the link: %v %s", err, out.String())
	}
	out.Reset()
	if err := ToLog(log, false).Send(t.Context(), letter); err != nil || !strings.Contains(out.String(), letter.Subject) {
		t.Errorf("%v %s", err, out.String())
	}
	if strings.Contains(out.String(), "token") || strings.Contains(out.String(), letter.To) {
		t.Errorf("production shows a secret: %s", out.String())
	}
}
