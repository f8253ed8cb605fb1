package hclfile

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// cidrFunc makes a function of a network prefix and whole numbers.
func cidrFunc(numbers []string, f func(prefix netip.Prefix, n []int64) (string, error)) function.Function {
	params := []function.Parameter{{Name: "prefix", Type: cty.String}}
	for _, name := range numbers {
		params = append(params, function.Parameter{Name: name, Type: cty.Number})
	}
	return function.New(&function.Spec{
		Params: params,
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			prefix, err := netip.ParsePrefix(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "must be a network such as 10.0.0.0/8")
			}
			n := make([]int64, len(args)-1)
			for i := range n {
				value, acc := args[i+1].AsBigFloat().Int64()
				if acc != big.Exact {
					return cty.NilVal, function.NewArgErrorf(i+1, "must be a whole number")
				}
				n[i] = value
			}
			out, err := f(prefix.Masked(), n)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(out), nil
		},
	})
}

// addTo returns base + n·2^shift as an address.
func addTo(base netip.Addr, n int64, shift uint) (netip.Addr, error) {
	sum := new(big.Int).SetBytes(base.AsSlice())
	sum.Add(sum, new(big.Int).Lsh(big.NewInt(n), shift))
	raw := make([]byte, base.BitLen()/8)
	if sum.Sign() < 0 || sum.BitLen() > base.BitLen() {
		return netip.Addr{}, errors.New("is outside the network")
	}
	addr, _ := netip.AddrFromSlice(sum.FillBytes(raw))
	return addr, nil
}

var (
	cidrHostFunc = cidrFunc([]string{"number"}, func(p netip.Prefix, n []int64) (string, error) {
		number := n[0]
		base := p.Addr()
		if number < 0 { // from the end, -1 is the last
			hosts := uint(p.Addr().BitLen() - p.Bits())
			end, err := addTo(base, 1, hosts)
			if err != nil {
				return "", fmt.Errorf("host %d %w", number, err)
			}
			base = end
		}
		host, err := addTo(base, number, 0)
		if err != nil || !p.Contains(host) {
			return "", fmt.Errorf("host %d is outside the network %s", number, p)
		}
		return host.String(), nil
	})
	cidrNetmaskFunc = cidrFunc(nil, func(p netip.Prefix, _ []int64) (string, error) {
		if !p.Addr().Is4() {
			return "", errors.New("only IPv4 networks have a netmask")
		}
		return net.IP(net.CIDRMask(p.Bits(), 32)).String(), nil
	})
	cidrSubnetFunc = cidrFunc([]string{"newbits", "number"}, func(p netip.Prefix, n []int64) (string, error) {
		bits := int64(p.Bits()) + n[0]
		if n[0] < 0 || n[0] > 32 || bits > int64(p.Addr().BitLen()) {
			return "", fmt.Errorf("%s has no room for %d more bits", p, n[0])
		}
		if n[1] < 0 || n[1] >= 1<<n[0] {
			return "", fmt.Errorf("the number must be from 0 to %d, not %d", int64(1)<<n[0]-1, n[1])
		}
		sub, err := addTo(p.Addr(), n[1], uint(int64(p.Addr().BitLen())-bits))
		if err != nil {
			return "", err
		}
		return sub.String() + "/" + strconv.FormatInt(bits, 10), nil
	})
)
