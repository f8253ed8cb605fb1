// Package wire is what server and client share of the network: the framing of
// calls over yamux sessions, the connection pool and the names of the RPC methods.
// How values are written is package codec's.
//
// One TCP port carries everything: the first byte of a connection distinguishes Raft from
// RPC, within TLS where that is on (see TLS): then both sides show certificates, and the
// names in them state who may do what. An RPC connection is a yamux session on which BOTH sides may open streams,
// so that a server can call the client that called it, through whatever stands
// between them. A stream is one call, or one after the other (see kept):
//
//	caller → callee   frame(header{Method, Via, Keep}) frame(arguments)
//	callee → caller   frame(status{Code, Msg, Hint, Kept}) then, if the code is empty, frame(answer)
//	                  or, on a streaming method, any number of frames; each is preceded by a
//	                  status, and a status with End set closes the stream
//
// A frame is a 4-byte big-endian length and that many bytes of msgpack. A caller
// that gives up closes its stream; the callee's context is then cancelled.
//
// This package must never know what a job or an allocation is, and must never
// be imported by structs or the scheduler.
package wire
