package codec

// MaxWrittenDepth is how deep lists and maps may lie within each other in what is kept: well below the 1024 that the decoder takes,
// as what is kept is sent within other values.
const MaxWrittenDepth = 512

// TooDeep reports whether msgpack data, which is well formed, is deeper than [MaxWrittenDepth].
func TooDeep(data []byte) bool {
	var left [MaxWrittenDepth]int // values that are still to come of each list and map that is open
	depth := 0
	for i := 0; i < len(data); {
		b := data[i]
		i++
		inside := 0
		switch {
		case b < 0x80 || b >= 0xe0: // small numbers
		case b < 0x90: // short maps
			inside = 2 * int(b&0xf)
		case b < 0xa0: // short lists
			inside = int(b & 0xf)
		case b < 0xc0: // short strings
			i += int(b & 0x1f)
		case b == 0xc0: // nil
		case b >= 0xdc: // long lists and maps
			width := 2 << (b & 1)
			inside = sizeOf(data[i:], width)
			i += width
			if b >= 0xde {
				inside *= 2
			}
		default:
			i += sizeAfter(b, data[i:])
		}
		if depth > 0 {
			left[depth-1]--
		}
		if inside > 0 {
			if depth == len(left) {
				return true
			}
			left[depth] = inside
			depth++
			continue
		}
		for depth > 0 && left[depth-1] <= 0 {
			depth--
		}
	}
	return false
}
