// Package e2e tests nomadish from outside: the built binary as real processes, its
// command line and its HTTP API, called by our own client and by Nomad's official one.
// It must never import what is inside.
package e2e
