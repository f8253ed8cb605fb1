package structs

import "testing"

// IDs that are minted one after another differ in the characters that the CLI shows.
func TestMintedIDsDifferInWhatIsShown(t *testing.T) {
	seen := map[string]bool{}
	for i := range 200 {
		id := MintedID(1_780_000_000_000+int64(i), [10]byte{0, 0, byte(i), byte(i * 7)})
		if len(id) != 36 || id[14] != '8' || ShortID(id) != id[:8] {
			t.Fatalf("%q is not an ID of the expected form", id)
		}
		if seen[ShortID(id)] {
			t.Fatalf("two IDs are shown as %s", ShortID(id))
		}
		seen[ShortID(id)] = true
	}
	// The time stands in the last group.
	if id := MintedID(0x0123456789ab, [10]byte{}); id != "00000000-0000-8000-8000-0123456789ab" {
		t.Errorf("minted %s", id)
	}
}
