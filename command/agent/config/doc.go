// Package config is the agent's configuration: what may be written in its files
// (HCL and JSON, with Nomad's names), how files and flags become one [Config],
// and what is refused.
//
// A file is read into a tree of names, values and places that is the same for HCL
// and JSON, and the tree into the structs of this package by their hcl tags. Files
// are laid over each other in the order given, each over what the ones before it
// stated: values win, maps are merged by key, and lists marked append grow.
//
// Every name of Nomad's is known. One that does nothing here yet is accepted with
// a warning that names it; an unknown one is refused with its place and the
// nearest known name.
//
// The package must never start anything, use the network, or know servers and
// clients: what the values mean to those is the agent's wiring.
package config
