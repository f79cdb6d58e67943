package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"flagledger/commands/billing"
	"flagledger/commands/keep/keys"
)

// checkProduction names the first setting that is not allowed in production.
func (c *Config) checkProduction() error {
	if c.Environment != "production" {
		return nil
	}
	if c.Secret == "" {
		return fmt.Errorf(
			"FLAGLEDGER_SECRET must be set in production, to at least %d random characters, the same on all nodes: "+
				"`openssl rand -hex 32` makes one",
			keys.MinSecret)
	}
	if newest, _, _ := strings.Cut(c.Secret, ","); guessable(strings.TrimSpace(newest)) {
		return errors.New(
			"FLAGLEDGER_SECRET must be random in production, and not a pattern that is repeated or the one of compose.yaml: " +
				"`openssl rand -hex 32` makes one, and new,old puts it in place of another")
	}
	for _, proxies := range c.ProxyNetworks {
		if widest := privateBits(proxies); proxies.Bits() < widest {
			return fmt.Errorf(
				"FLAGLEDGER_TRUSTED_PROXIES must not be wider than /%d in production, as private networks are: anyone who "+
					"connects from %s could say which address they have",
				widest, proxies)
		}
	}
	if !strings.HasPrefix(c.PublicURL, "https://") {
		return errors.New(
			"FLAGLEDGER_PUBLIC_URL must begin with https:// in production: tokens and mailed links are sent to it")
	}
	for _, origin := range c.Origins {
		if strings.HasPrefix(origin, "http://") {
			return fmt.Errorf("FLAGLEDGER_CORS_ORIGINS must not name pages over http in production; one is %q", origin)
		}
	}
	for _, origin := range c.Payment.ReturnOrigins {
		u, err := url.Parse(strings.TrimSpace(origin))
		if err != nil || u.Scheme != "https" || billing.Loopback(u.Hostname()) {
			return fmt.Errorf(
				"FLAGLEDGER_RETURN_ORIGINS must begin with https:// in production, and not be this machine; one is %q", origin,
			)
		}
	}
	return nil
}

// minDifferent is the least number of different characters in a random secret; 32 random decimal digits have fewer
// once in 10^7 draws.
const minDifferent = 6

// composeSecret is the published default of compose.yaml.
const composeSecret = "this one is for trying it out alone"

// guessable reports whether a secret is plainly not random: the published one, with few different characters, or a
// repeated pattern.
func guessable(secret string) bool {
	if secret == composeSecret {
		return true
	}
	different := map[rune]bool{}
	for _, r := range secret {
		different[r] = true
	}
	if len(different) < minDifferent {
		return true
	}
	for period := 1; period <= len(secret)/2; period++ {
		if secret[period:] == secret[:len(secret)-period] {
			return true
		}
	}
	return false
}

// privateBits returns the prefix length of the widest private network: of 10.0.0.0/8, or of fc00::/7.
func privateBits(network netip.Prefix) int {
	if network.Addr().Is4() {
		return 8
	}
	return 7
}

// WarnOfExposure logs what the settings allow strangers: in development anyone who can reach the service, in
// production any web page.
func (c Config) WarnOfExposure(log *slog.Logger) {
	if c.Environment != "development" {
		if slices.Contains(c.Origins, "*") {
			log.Warn(
				"FLAGLEDGER_CORS_ORIGINS is *: pages of any origin may call the service from a browser, with a token that they " +
					"have or a password that is typed there. Name the origins of your pages")
		}
		return
	}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && !billing.Loopback(host) {
		log.Warn(
			"FLAGLEDGER_ENVIRONMENT is development, and other machines can reach FLAGLEDGER_ADDR: every address counts as "+
				"verified, and mailed links stand in this log. Set production where others can sign up", "address", c.Addr)
	}
	if public, err := url.Parse(c.PublicURL); err == nil && public.Hostname() != "" &&
		!billing.Loopback(public.Hostname()) {
		log.Warn(
			"FLAGLEDGER_ENVIRONMENT is development, and FLAGLEDGER_PUBLIC_URL is not of this machine alone: behind a proxy, "+
				"anyone who signs up there has an address that counts as verified, and mailed links stand in this log. Set "+
				"production where others can sign up", "url", c.PublicURL)
	}
	if len(c.SuperUsers) > 0 {
		log.Warn(
			"FLAGLEDGER_ENVIRONMENT is development, and FLAGLEDGER_SUPER_USERS is set: anyone who signs up with one of those " +
				"addresses runs the platform, since every address counts as verified. Set production where others can sign up")
	}
}
