package main

import (
	"os"

	"flagledger/http"
)

type openAPICommand struct{}

// Run prints the OpenAPI document, for which no server runs.
func (openAPICommand) Run() error {
	_, err := os.Stdout.Write(http.Document())
	return err
}
