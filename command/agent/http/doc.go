// Package httpapi is the HTTP face of an agent: the routes under /v1, with
// Nomad's paths, methods, parameters, headers and JSON.
//
// One file holds one resource; routes.go lists every route there is. A handler
// reads its request, makes one call of a [Backend] (the servers' RPC methods, by
// the names in package wire) and returns what is to be encoded. Everything that
// is the same for all routes (limits, methods, parameters, errors, compression,
// encoding) stands once, in server.go, request.go and encode.go. guard.go keeps
// web pages out, body.go bounds how long a request's body may take.
//
// The package must never decide anything about jobs, nodes or allocations, hold
// state of the cluster, choose a status by the text of an error, or know
// whether the agent is a server or a client: that is the Backend's affair.
package httpapi
