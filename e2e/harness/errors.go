package harness

import "fmt"

// Errorf is fmt.Errorf for texts with an error that may be nil, which %w cannot print.
func Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
