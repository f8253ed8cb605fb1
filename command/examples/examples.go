// Package examples holds the files that `job init`, `node pool init`, `project init`, `vc init` and `workflow init` write. It must never hold
// anything that does not run as it stands on a development agent. It is a package because its files are a folder that is tried as a
// whole, and embedded from where they stand.
package examples

import _ "embed" // the files

// Service is a job that is kept running.
//
//go:embed service.nomad.hcl
var Service string

// NodePool is a node pool, and NodePoolJSON the same in JSON.
//
//go:embed pool.hcl
var NodePool string

// NodePoolJSON is NodePool in JSON.
//
//go:embed pool.json
var NodePoolJSON string

// VirtualCluster is a virtual cluster, and VirtualClusterJSON the same in JSON.
//
//go:embed vc.hcl
var VirtualCluster string

// VirtualClusterJSON is VirtualCluster in JSON.
//
//go:embed vc.json
var VirtualClusterJSON string

// Project is a flow and a project that follows it, and ProjectJSON the same in JSON.
//
//go:embed project.hcl
var Project string

// ProjectJSON is Project in JSON.
//
//go:embed project.json
var ProjectJSON string

// Batch is a job that runs to completion.
//
//go:embed batch.nomad.hcl
var Batch string

// Workflow is a workflow of three stages.
//
//go:embed workflow.hcl
var Workflow string
