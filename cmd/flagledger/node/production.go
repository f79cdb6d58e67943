package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"flagledger/commands"
)

// checkProduction names the first setting that does not go with production.
func (c Config) checkProduction() error {
	if c.Environment != "production" {
		return nil
	}
	if c.Secret == "" {
		return errors.New("FLAGLEDGER_SECRET must be set in production, to at least 32 random characters, the same on all nodes: `openssl rand -hex 32` makes one")
	}
	if !strings.HasPrefix(c.PublicURL, "https://") {
		return errors.New("FLAGLEDGER_PUBLIC_URL must begin with https:// in production: tokens and mailed links are sent to it")
	}
	for _, origin := range c.Origins {
		if strings.HasPrefix(origin, "http://") {
			return fmt.Errorf("FLAGLEDGER_CORS_ORIGINS must not name pages over http in production; one is %q", origin)
		}
	}
	for _, origin := range c.Payment.ReturnOrigins {
		u, err := url.Parse(strings.TrimSpace(origin))
		if err != nil || u.Scheme != "https" || commands.Loopback(u.Hostname()) {
			return fmt.Errorf("FLAGLEDGER_RETURN_ORIGINS must begin with https:// in production, and not be this machine; one is %q", origin)
		}
	}
	return nil
}

// WarnOfExposure logs what a service in development lets anybody do who can reach it.
func (c Config) WarnOfExposure(log *slog.Logger) {
	if c.Environment != "development" {
		return
	}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && !commands.Loopback(host) {
		log.Warn("FLAGLEDGER_ENVIRONMENT is development, and other machines can reach FLAGLEDGER_ADDR: every address counts as verified, and mailed links stand in this log. Set production where others can sign up", "address", c.Addr)
	}
	if len(c.SuperUsers) > 0 {
		log.Warn("FLAGLEDGER_ENVIRONMENT is development, and FLAGLEDGER_SUPER_USERS is set: whoever signs up with one of those addresses runs the platform, since every address counts as verified. Set production where others can sign up")
	}
}
