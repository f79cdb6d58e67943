package systemtest

import (
	"context"
	"log"
	"net"
	"os"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// The test binary serves with the first of these settings instead of testing, as a process that can be killed and has
// what the program itself does not know.
const (
	serveSetting = "TEST_SERVE"
	fcmSetting   = "TEST_FCM"   // the address of an FCM other than Google's
	clockSetting = "TEST_CLOCK" // by how much its clock is ahead of the machine's
)

func TestMain(m *testing.M) {
	if os.Getenv(serveSetting) != "" {
		log.Fatal(serve(context.Background()))
	}
	nodetest.Main(m)
}

func serve(ctx context.Context) error {
	c, err := settings.Load()
	if err != nil {
		return err
	}
	c.PushEndpoint = os.Getenv(fcmSetting)
	c.HashMemory = 8 // with the race detector, the recommended ones take seconds
	if text := os.Getenv(clockSetting); text != "" {
		ahead, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		c.Now = func() time.Time { return time.Now().Add(ahead) }
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	url, _, err := node.OpenDatabase(ctx, c, c.Logger())
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, c, url, c.Logger())
	if err != nil {
		return err
	}
	return n.API.Server().Serve(listener)
}
