// Package users is about whom tasks run as on this machine: who a user is, whether tasks may run as it here, and
// whether it can enter a directory.
//
// The package must never change anything on the machine.
package users
