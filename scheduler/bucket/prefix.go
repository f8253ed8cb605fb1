package bucket

// prefix packs the first digits of an ID into a number, so that most comparisons
// of IDs need not read the IDs themselves. It follows the order of strings: a < b
// has prefix(a) ≤ prefix(b), for any strings. It distinguishes UUIDs by their first
// 16 digits; of a string that is no UUID, it packs what comes before the first
// byte that no UUID has there.
func prefix(id string) uint64 {
	if len(id) >= 18 && id[8] == '-' && id[13] == '-' {
		hi, ok := digits(four(id)<<32 | four(id[4:]))
		lo, too := digits(four(id[9:])<<32 | four(id[14:]))
		if ok && too {
			return hi<<32 | lo
		}
	}
	return prefixOfAny(id)
}

// four puts four bytes into a number, the first highest.
func four(s string) uint64 {
	_ = s[3]
	return uint64(s[0])<<24 | uint64(s[1])<<16 | uint64(s[2])<<8 | uint64(s[3])
}

// digits reads eight hexadecimal digits, all at once, a byte each. False: some
// byte is not one of 0-9 and a-f.
func digits(x uint64) (n uint64, ok bool) {
	const each = 0x0101010101010101
	letter := x >> 6 & each // 0x61-0x66 have this bit, 0x30-0x39 do not
	n = x&(each*0x0f) + letter*9
	ok = n+each*'0'+letter*('a'-'0'-10) == x && // no other bit was set
		n&(each*0xf0) == 0 && // not behind f
		(n+each*6)>>4&each == letter // letters from 10 on, and only those
	n = (n | n>>4) & 0x00ff00ff00ff00ff
	n = (n | n>>8) & 0x0000ffff0000ffff
	return (n | n>>16) & 0xffffffff, ok
}

// prefixOfAny is prefix for any string, a byte at a time.
func prefixOfAny(id string) (p uint64) {
	left := 64
	for i := 0; i < len(id) && left > 0; i++ {
		c := id[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c == '-' {
				continue
			}
			if c < '-' {
				return p
			}
			return p | (1<<left - 1)
		}
		var digit uint64
		switch {
		case c < '0':
			return p
		case c <= '9':
			digit = uint64(c - '0')
		case c < 'a':
			return p | 9<<(left-4) | (1<<(left-4) - 1)
		case c <= 'f':
			digit = uint64(c-'a') + 10
		default:
			return p | (1<<left - 1)
		}
		left -= 4
		p |= digit << left
	}
	return p
}
