// Package reference writes docs/reference/nomad.md: what differs from Nomad on purpose, and what of Nomad's is missing.
//
// The page is generated, so that it states what the answers contain: routes, settings and fields come from the tables that the
// agent itself answers by. Only [Differences] and [Partly] are written by hand; a change that makes one of their rows wrong
// changes the row too. `make docs` writes the page, and a test in package command fails if it is stale.
//
// The package must never be imported by the binary: it is for tests and for `make docs`.
package reference
