//go:build earlier

package structs

// A build with this tag knows fewer entry types, those up to LogTypeFirst: it stands for an earlier version in the test of rolling
// upgrades where the source of one cannot be had.
const logTypeEnd = 19
