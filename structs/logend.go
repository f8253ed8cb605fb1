//go:build !earlier

package structs

const logTypeEnd LogType = 20
