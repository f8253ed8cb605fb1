// Package harness is what the end-to-end tests share: it builds the binary to test, starts agents and servers as real processes, runs
// the command line, and waits for what they are to do. What only one folder of tests needs is in that folder.
//
// A package of tests has a TestMain that calls Main, and then all flags of the tests: -bin, -logs, -slow, -faults.
package harness
