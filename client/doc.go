// Package client is the node agent: it registers a node with the servers, keeps
// it alive, learns which allocations the node is to run, runs them, and reports
// what becomes of them. One client may stand for many simulated nodes beside or
// instead of its own.
//
// The package speaks with servers over RPC only, also in the same process, and
// never imports the server. It must never decide where something runs, start a
// task that no server wants, or end a task because the agent ends.
package client
