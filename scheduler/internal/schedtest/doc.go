// Package schedtest makes nodes and jobs for the tests of the scheduler, fixed ones and random ones. It
// must be imported by tests only, and knows nothing of the scheduler.
package schedtest
