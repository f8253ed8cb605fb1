// Package certs makes the certificates of a cluster: an authority (CA), and the
// certificates of servers, clients and command lines that it signs. It works on PEM
// texts in memory; keys are ECDSA on P-256.
//
// A certificate states its role by a DNS name, see structs.CertName. Whoever holds the
// CA's key can make a server, and so owns the cluster.
//
// This package must never read or write a file, and never use a key for anything but
// signing certificates.
package certs
