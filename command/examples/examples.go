// Package examples holds the job files that `job init` writes. It must never hold
// anything that does not run as it stands on a development agent.
package examples

import _ "embed" // the files

// Service is a job that is kept running.
//
//go:embed service.nomad.hcl
var Service string

// Batch is a job that runs to completion.
//
//go:embed batch.nomad.hcl
var Batch string
