package hclfile

import (
	"errors"
	"maps"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

var errNoFiles = errors.New("functions that read files are not allowed here; pass the text as a variable")

// functions are those of Nomad's job files. The ones that could make much of
// little are bounded.
func functions(opts Options) map[string]function.Function {
	out := maps.Clone(pureFunctions)
	for name, f := range fileFunctions(opts.BaseDir, opts.Limits.orDefaults().FileBytes) {
		if !opts.AllowFS {
			f = bounded(f, func([]cty.Value) error { return errNoFiles })
		}
		out[name] = f
	}
	return out
}

var pureFunctions = map[string]function.Function{
	// numbers
	"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
	"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": boundedParseInt, "pow": stdlib.PowFunc,
	"signum": stdlib.SignumFunc, "sum": sumFunc,

	// strings
	"basename": basenameFunc, "dirname": dirnameFunc,
	"chomp": stdlib.ChompFunc, "endswith": endsWithFunc, "format": boundedFormat(stdlib.FormatFunc),
	"formatlist": boundedFormat(stdlib.FormatListFunc), "indent": boundedIndent, "join": stdlib.JoinFunc,
	"lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc, "regex_replace": boundedReplace(stdlib.RegexReplaceFunc),
	"regexall": stdlib.RegexAllFunc, "replace": boundedReplace(stdlib.ReplaceFunc), "split": stdlib.SplitFunc,
	"startswith": startsWithFunc, "strcontains": containsFunc, "strlen": stdlib.StrlenFunc,
	"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
	"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
	"upper": stdlib.UpperFunc,

	// collections
	"alltrue": allTrueFunc, "anytrue": anyTrueFunc, "chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc,
	"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
	"contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
	"flatten": stdlib.FlattenFunc, "index": stdlib.IndexFunc, "keys": stdlib.KeysFunc, "length": stdlib.LengthFunc,
	"lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc,
	"reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
	"setproduct": boundedProduct, "setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
	"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

	// encodings
	"base64decode": base64DecodeFunc, "base64encode": base64EncodeFunc, "csvdecode": stdlib.CSVDecodeFunc,
	"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "urlencode": urlEncodeFunc,
	"yamldecode": boundedYAML, "yamlencode": ctyyaml.YAMLEncodeFunc,

	// hashes and ids
	"md5": md5Func, "sha1": sha1Func, "sha256": sha256Func, "sha512": sha512Func,
	"uuidv4": uuidV4Func, "uuidv5": uuidV5Func,

	// times
	"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,

	// networks
	"cidrhost": cidrHostFunc, "cidrnetmask": cidrNetmaskFunc, "cidrsubnet": cidrSubnetFunc,

	// types
	"can": tryfunc.CanFunc, "convert": convertFunc, "try": tryfunc.TryFunc,
	"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number),
	"tostring": stdlib.MakeToFunc(cty.String), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
	"tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
}
