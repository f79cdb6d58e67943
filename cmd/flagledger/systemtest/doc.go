// Package systemtest tests whole nodes: outages of their databases, kills, several nodes side by side, and whether all
// views of a flag agree. Tests of the API belong in http, tests of the command line in cmd/flagledger.
package systemtest
