// Package rpc answers the servers' RPC methods: it checks what comes in, mints the
// IDs and times that log entries carry (here, never later), has the entry
// committed, and answers reads and blocking queries from the state.
//
// It must never change state but through the Applier, and never see the server: it
// takes the parts that it needs as small interfaces.
package rpc
