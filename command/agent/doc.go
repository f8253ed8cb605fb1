// Package agent is the `agent` command: it reads the configuration, starts a
// server and/or a client in this process, puts the HTTP API in front of them, and
// ends them in order.
//
// It is the only package that knows both the server and the client, and only in
// wiring.go, where configuration becomes theirs. They speak with each other over
// RPC also here. Nothing that a server or a client does may be decided here.
//
// Goroutines (each ends in Agent.Shutdown): one per HTTP listener (http), one
// that emits Go's own metrics (telemetry), and in Run one that waits for signals.
package agent
