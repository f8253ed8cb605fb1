//go:build !earlier

package structs

const logTypeEnd = 37
