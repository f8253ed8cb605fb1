// Package api is the Go client of nomadish's HTTP API. Its values are those of
// package structs: what the servers store is what a program reads.
//
//	c, err := api.New(api.Config{Address: "http://127.0.0.1:4646"})
//	jobs, meta, err := c.Jobs().List(ctx, nil)
//
// It must never know how a server works: it speaks HTTP and JSON, nothing else.
package api
