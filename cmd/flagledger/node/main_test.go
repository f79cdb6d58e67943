package node_test

import (
	"context"
	"log"
	"net"
	"os"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
)

// fcmSetting names an FCM of a test. The test binary serves with it instead of testing, as a process that can be killed: the program itself knows Google's
// FCM alone.
const fcmSetting = "TEST_FCM"

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(fcmSetting); endpoint != "" {
		log.Fatal(serve(context.Background(), endpoint))
	}
	nodetest.Main(m)
}

func serve(ctx context.Context, fcm string) error {
	c, err := node.Load()
	if err != nil {
		return err
	}
	c.PushEndpoint = fcm
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
