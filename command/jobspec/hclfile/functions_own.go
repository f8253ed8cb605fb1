package hclfile

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// What one call of a function may make.
const (
	maxFunctionBytes    = 10_000_000 // bytes that a function may return
	maxFunctionElements = 100_000    // elements that a function may return
	maxIndent           = 1000       // spaces of indent
	maxFormatWidth      = 4          // digits
	maxIntegerDigits    = 1000       // digits of a number in text
)

// textFunc makes a function of strings that returns a string.
func textFunc(n int, f func(in []string) (string, error)) function.Function {
	params := make([]function.Parameter, n)
	for i := range params {
		params[i] = function.Parameter{Name: fmt.Sprintf("text%d", i+1), Type: cty.String}
	}
	return function.New(&function.Spec{
		Params: params,
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			in := make([]string, len(args))
			for i, a := range args {
				in[i] = a.AsString()
			}
			out, err := f(in)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(out), nil
		},
	})
}

// unknownFunc makes a question about two strings.
func unknownFunc(f func(text, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var (
	startsWithFunc = unknownFunc(strings.HasPrefix)
	endsWithFunc   = unknownFunc(strings.HasSuffix)
	containsFunc   = unknownFunc(strings.Contains)

	base64EncodeFunc = textFunc(1, func(in []string) (string, error) {
		return base64.StdEncoding.EncodeToString([]byte(in[0])), nil
	})
	base64DecodeFunc = textFunc(1, func(in []string) (string, error) {
		raw, err := base64.StdEncoding.DecodeString(in[0])
		if err != nil {
			return "", fmt.Errorf("no base64: %w", err)
		}
		if !utf8.Valid(raw) {
			return "", errors.New("what it decodes to is no UTF-8 text")
		}
		return string(raw), nil
	})
	basenameFunc  = textFunc(1, func(in []string) (string, error) { return filepath.Base(in[0]), nil })
	dirnameFunc   = textFunc(1, func(in []string) (string, error) { return filepath.Dir(in[0]), nil })
	urlEncodeFunc = textFunc(1, func(in []string) (string, error) { return url.QueryEscape(in[0]), nil })

	md5Func = textFunc(1, func(in []string) (string, error) {
		sum := md5.Sum([]byte(in[0]))
		return hex.EncodeToString(sum[:]), nil
	})
	sha1Func = textFunc(1, func(in []string) (string, error) {
		sum := sha1.Sum([]byte(in[0]))
		return hex.EncodeToString(sum[:]), nil
	})
	sha256Func = textFunc(1, func(in []string) (string, error) {
		sum := sha256.Sum256([]byte(in[0]))
		return hex.EncodeToString(sum[:]), nil
	})
	sha512Func = textFunc(1, func(in []string) (string, error) {
		sum := sha512.Sum512([]byte(in[0]))
		return hex.EncodeToString(sum[:]), nil
	})

	uuidV4Func = textFunc(0, func([]string) (string, error) {
		id, err := uuid.NewRandom()
		return id.String(), err
	})
	uuidV5Func = textFunc(2, func(in []string) (string, error) {
		spaces := map[string]uuid.UUID{"dns": uuid.NameSpaceDNS, "url": uuid.NameSpaceURL, "oid": uuid.NameSpaceOID, "x500": uuid.NameSpaceX500}
		space, ok := spaces[in[0]]
		if !ok {
			var err error
			if space, err = uuid.Parse(in[0]); err != nil {
				return "", errors.New(`the namespace must be "dns", "url", "oid", "x500" or a UUID`)
			}
		}
		return uuid.NewSHA1(space, []byte(in[1])).String(), nil
	})
)

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		sum := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, n := it.Element()
			if n.IsNull() {
				return cty.NilVal, errors.New("the list holds null")
			}
			sum = sum.Add(n)
		}
		return sum, nil
	},
})

func truthFunc(start bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				_, b := it.Element()
				if !b.IsNull() && b.True() != start {
					return cty.BoolVal(!start), nil
				}
			}
			return cty.BoolVal(start), nil
		},
	})
}

var (
	allTrueFunc = truthFunc(true)
	anyTrueFunc = truthFunc(false)
)

// convertFunc is convert(value, type).
var convertFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		{Name: "type", Type: customdecode.ExpressionType},
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		t, diags := typeexpr.TypeConstraint(customdecode.ExpressionFromVal(args[1]))
		if diags.HasErrors() {
			return cty.NilType, function.NewArgError(1, diags)
		}
		out, err := convert.Convert(args[0], t)
		if err != nil {
			return cty.NilType, function.NewArgError(0, err)
		}
		return out.Type(), nil
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) { return convert.Convert(args[0], want) },
})

// bounded makes a function that first checks whether a call may be made.
func bounded(f function.Function, allow func(args []cty.Value) error) function.Function {
	spec := &function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if known(args) {
				if err := allow(args); err != nil {
					return cty.NilType, err
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if err := allow(args); err != nil {
				return cty.NilVal, err
			}
			return f.Call(args)
		},
	}
	return function.New(spec)
}

func known(args []cty.Value) bool {
	for _, a := range args {
		if !a.IsWhollyKnown() {
			return false
		}
	}
	return true
}

// boundedFormat refuses widths and precisions that make much of little.
func boundedFormat(f function.Function) function.Function {
	return bounded(f, func(args []cty.Value) error {
		if args[0].IsNull() || args[0].Type() != cty.String {
			return nil
		}
		digits := 0
		for _, c := range []byte(args[0].AsString()) {
			if c == '*' || c < '0' || c > '9' {
				digits = 0
				continue
			}
			if digits++; digits > maxFormatWidth {
				return fmt.Errorf("numbers in the format must have at most %d digits", maxFormatWidth)
			}
		}
		return nil
	})
}

var boundedIndent = bounded(stdlib.IndentFunc, func(args []cty.Value) error {
	if args[0].IsNull() || args[1].IsNull() {
		return nil
	}
	if n, _ := args[0].AsBigFloat().Int64(); n < 0 || n > maxIndent {
		return fmt.Errorf("must indent by 0 to %d spaces", maxIndent)
	}
	return nil
})

// boundedParseInt bounds a cost that grows with the square of the digits.
var boundedParseInt = bounded(stdlib.ParseIntFunc, func(args []cty.Value) error {
	if !args[0].IsNull() && args[0].Type() == cty.String && len(args[0].AsString()) > maxIntegerDigits {
		return fmt.Errorf("a number must have at most %d digits", maxIntegerDigits)
	}
	return nil
})

// boundedReplace bounds what replacing every byte could give.
func boundedReplace(f function.Function) function.Function {
	return bounded(f, func(args []cty.Value) error {
		for _, a := range args {
			if a.IsNull() || a.Type() != cty.String {
				return nil
			}
		}
		if (len(args[0].AsString())+1)*(len(args[2].AsString())+1) > maxFunctionBytes*10 {
			return errors.New("the text and its replacement are too large together")
		}
		return nil
	})
}

var boundedProduct = bounded(stdlib.SetProductFunc, func(args []cty.Value) error {
	product := 1
	for _, a := range args {
		if a.IsNull() || !a.CanIterateElements() {
			return nil
		}
		if product *= max(1, a.LengthInt()); product > maxFunctionElements {
			return fmt.Errorf("the product would have more than %d elements", maxFunctionElements)
		}
	}
	return nil
})

// boundedYAML refuses anchors: aliases of aliases make much of little.
var boundedYAML = bounded(ctyyaml.YAMLDecodeFunc, func(args []cty.Value) error {
	if args[0].IsNull() || args[0].Type() != cty.String {
		return nil
	}
	text := []byte(args[0].AsString())
	if bytes.Count(text, []byte("*")) > 100 || bytes.Count(text, []byte("&")) > 20 && bytes.Contains(text, []byte("*")) {
		return errors.New("too many YAML aliases")
	}
	return nil
})
