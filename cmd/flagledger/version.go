package main

import (
	"fmt"

	"flagledger/http"
)

// build is the number of the build, set by the linker.
var build = "dev"

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	_, err := fmt.Printf("flagledger %s (%s)\n", http.Version, build)
	return err
}
