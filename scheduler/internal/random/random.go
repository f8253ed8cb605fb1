// Package random is a small generator of numbers that is given its seed, so that decisions can be repeated.
package random

// Numbers is a small generator (SplitMix64, Steele, Lea and Flood 2014): the same
// seed yields the same numbers on every machine and with every Go version.
type Numbers struct{ State uint64 }

// Next returns the next number.
func (r *Numbers) Next() uint64 {
	r.State += 0x9e3779b97f4a7c15
	z := r.State
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// Below returns a number from 0 to n-1; n must be above 0.
func (r *Numbers) Below(n int) int {
	return int(r.Next() % uint64(n)) // n is above 0; the bias is below n in 2^64
}
