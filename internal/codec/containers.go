package codec

// Containers returns how many lists, maps and nils msgpack data has, whatever is wrong with it: that is for its decoder to find.
func Containers(data []byte) int {
	found := 0
	for i := 0; i < len(data); {
		b := data[i]
		i++
		switch {
		case b < 0x80 || b >= 0xe0: // small numbers
		case b < 0xa0: // short maps and lists
			found++
		case b < 0xc0: // short strings
			i += int(b & 0x1f)
		case b == 0xc0: // nil
			found++
		case b >= 0xdc: // long lists and maps
			found++
			i += 2 << (b & 1)
		default:
			i += sizeAfter(b, data[i:])
		}
	}
	return found
}

// fixedSizes are the bytes that follow the first of those values whose length it states itself, from 0xc0 on.
var fixedSizes = [...]int{0xca - 0xc0: 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17}

// sizeAfter returns how many bytes follow the first of a value from 0xc0 to 0xdb.
func sizeAfter(b byte, rest []byte) int {
	width, extra := 0, 0
	switch b {
	case 0xc4, 0xc5, 0xc6: // bytes
		width = 1 << (b - 0xc4)
	case 0xc7, 0xc8, 0xc9: // extensions, with a type
		width, extra = 1<<(b-0xc7), 1
	case 0xd9, 0xda, 0xdb: // strings
		width = 1 << (b - 0xd9)
	default:
		return fixedSizes[b-0xc0]
	}
	if len(rest) < width {
		return width
	}
	return width + extra + sizeOf(rest, width)
}

// sizeOf returns a number of width bytes; 0: it is cut off.
func sizeOf(data []byte, width int) int {
	if len(data) < width {
		return 0
	}
	n := 0
	for _, c := range data[:width] {
		n = n<<8 | int(c)
	}
	return n
}
