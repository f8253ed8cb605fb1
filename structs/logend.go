//go:build !earlier

package structs

const logTypeEnd = 45
