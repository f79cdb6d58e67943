package main

import (
	"os"

	"flagledger/http"
)

type openAPICommand struct{}

// Run prints the OpenAPI document without a server.
func (openAPICommand) Run() error {
	_, err := os.Stdout.Write(http.Document())
	return err
}
