// Package mail sends mails through an SMTP server, or to the log.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"flagledger/commands/billing"
	"flagledger/commands/notify"
	"flagledger/events"
)

const timeout = 10 * time.Second // of a connection

// Server sends mails through an SMTP server.
type Server struct {
	host     string
	port     int
	implicit bool // TLS from the start
	user     string
	password string
	from     *netmail.Address

	roots *x509.CertPool // trusted roots; the system's if nil
}

var _ notify.Mailer = (*Server)(nil)

// Open returns the server of a URL: smtp://user:password@host:587?from=flags@example.com with STARTTLS, smtps:// with
// TLS from the start. A server on this machine may lack TLS. Errors do not repeat the URL, which may hold a password.
func Open(text string) (*Server, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	s := &Server{host: u.Hostname()}
	switch u.Scheme {
	case "smtp":
		s.port = 587
	case "smtps":
		s.port, s.implicit = 465, true
	default:
		return nil, errors.New("it must begin with smtp:// or smtps://")
	}
	if s.host == "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return nil, errors.New("it must name a host, and no path")
	}
	if port := u.Port(); port != "" {
		if s.port, err = strconv.Atoi(port); err != nil || s.port < 1 || s.port > 65535 {
			return nil, errors.New("its port must be a number from 1 to 65535")
		}
	}
	s.user = u.User.Username()
	s.password, _ = u.User.Password()
	if (s.user == "") != (s.password == "") {
		return nil, errors.New("it must have both a user and a password, or neither")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("its query cannot be read")
	}
	from := s.user
	for name, values := range query {
		if name != "from" || len(values) != 1 {
			return nil, errors.New("its query may hold from once, and nothing else")
		}
		from = values[0]
	}
	if s.from, err = netmail.ParseAddress(from); err != nil {
		return nil, errors.New("it must say whom mails are from: ?from=flags@example.com")
	}
	return s, nil
}

// Send implements notify.Mailer. It tries once. Errors leave out the server's text, which often repeats the address.
func (s *Server) Send(ctx context.Context, m notify.Mail) error {
	message := mail.NewMsg()
	message.FromMailAddress(s.from)
	if err := message.To(m.To); err != nil {
		return fmt.Errorf("%w: its address cannot be written to", notify.ErrRecipientRefused)
	}
	message.Subject(m.Subject)
	message.SetDate()
	message.SetMessageID()
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	message.SetBodyString(mail.TypeTextPlain, m.Text)
	err := s.send(ctx, message)
	if err == nil || message.IsDelivered() { // a later error, of QUIT, must not send it twice
		return nil
	}
	return nameless(err)
}

// nameless returns an error without the server's text.
func nameless(err error) error {
	if refusal, ok := errors.AsType[*mail.SendError](err); ok {
		why := fmt.Sprintf("%s: %s", refusal.Reason,
			strings.TrimSpace(fmt.Sprint(refusal.ErrorCode(), " ", refusal.EnhancedStatusCode())))
		switch {
		case !ofRecipient(refusal):
			return fmt.Errorf("the server does not take the mail, %s", why)
		case forGood(refusal):
			return fmt.Errorf("%w, %s", notify.ErrRecipientRefused, why)
		default:
			return fmt.Errorf("%w, %s", notify.ErrRecipientDeferred, why)
		}
	}
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("the server refuses the connection or the sign-in: %d", answer.Code)
	}
	return err
}

// ofRecipient reports whether a server refused only the recipient. The second number of a status (RFC 3463) is 1 for
// addresses, except that 1.7 and 1.8 concern the sender, and 2 for mailboxes.
func ofRecipient(e *mail.SendError) bool {
	_, status, _ := strings.Cut(e.EnhancedStatusCode(), ".")
	switch {
	case status == "1.7" || status == "1.8":
		return false
	case e.Reason == mail.ErrSMTPRcptTo:
		return e.ErrorCode() >= 400 // not a lost connection
	case e.Reason == mail.ErrSMTPDataClose:
		return strings.HasPrefix(status, "1.") || strings.HasPrefix(status, "2.")
	default:
		return false
	}
}

// forGood reports whether a status means that the address or mailbox accepts no mail at all. Microsoft's servers use
// 5.4.1 for an unknown address; 5.6.7 means an address in letters that a server does not support.
func forGood(e *mail.SendError) bool {
	status := e.EnhancedStatusCode()
	return strings.HasPrefix(status, "5.1.") || strings.HasPrefix(status, "5.2.") || status == "5.4.1" || status == "5.6.7"
}

func (s *Server) send(ctx context.Context, message *mail.Msg) error {
	options := []mail.Option{
		mail.WithPort(s.port), mail.WithTimeout(timeout),
		mail.WithTLSConfig(&tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}),
	}
	switch {
	case s.implicit:
		options = append(options, mail.WithSSL())
	case billing.Loopback(s.host):
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if !s.implicit { // before STARTTLS the server is not authenticated
		var opened net.Conn
		defer func() {
			if opened != nil { // the client leaves it open if the greeting fails
				_ = opened.Close()
			}
		}()
		options = append(
			options,
			mail.WithDialContextFunc(func(ctx context.Context, network, address string) (_ net.Conn, err error) {
				opened, err = dialBounded(ctx, network, address)
				return opened, err
			}),
		)
	}
	if s.user != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.user),
			mail.WithPassword(s.password))
	}
	client, err := mail.NewClient(s.host, options...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, message)
}

// maxAnswers limits a server's bytes in answer to a mail.
const maxAnswers = 1 << 20

// boundedConn limits the bytes that are read.
type boundedConn struct {
	net.Conn
	left int
}

func dialBounded(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &boundedConn{conn, maxAnswers}, nil
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, fmt.Errorf("the server's answers have more than %s", events.SizeText(maxAnswers))
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
