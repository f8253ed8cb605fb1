package explain

import "testing"

// TestProcessorText: whole cores are stated as such, and not as the MHz that they come to.
func TestProcessorText(t *testing.T) {
	for want, of := range map[string][2]int64{
		"64 cores": {64, 0}, "1 core": {1, 0}, "500 MHz": {0, 500}, "0 MHz": {0, 0}, "2 cores and 500 MHz": {2, 500},
	} {
		if got := processorText(of[0], of[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
