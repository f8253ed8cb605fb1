package structs

import (
	"maps"
	"strings"
	"unicode"
)

// NodeMeta is the metadata of a node, as its client reports it. JSON names are Nomad's.
type NodeMeta struct {
	Meta    map[string]string  // what the node registers with: Static, with Dynamic laid over it
	Dynamic map[string]*string // what was set while it ran; nil: the name is unset
	Static  map[string]string  // as configured
}

type (
	// NodeMetaRequest reads a node's metadata or, with Meta, changes it. An empty NodeID is the node of the client that is called.
	NodeMetaRequest struct {
		NodeID string
		// Meta is what to set; a nil value unsets a name. What is not named stays.
		Meta map[string]*string
		QueryOptions
	}
	// NodeMetaReply answers with all metadata of the node.
	NodeMetaReply struct {
		Node *NodeMeta
		QueryMeta
	}
)

// MergeNodeMeta returns static with dynamic laid over it. It shares nothing with either.
func MergeNodeMeta(static map[string]string, dynamic map[string]*string) map[string]string {
	out := make(map[string]string, len(static)+len(dynamic))
	maps.Copy(out, static)
	for k, v := range dynamic { // order does not matter: each name stands once
		if v == nil {
			delete(out, k)
		} else {
			out[k] = *v
		}
	}
	return out
}

// CheckNodeMetaChange returns an error if what is to be set or unset is nothing, too much, or has a name that is none: it takes
// words of letters, digits, underscores and dashes, with dots between them. The error names it.
func CheckNodeMetaChange(change map[string]*string) error {
	if len(change) == 0 {
		return Errorf(CodeBadRequest, "Meta: missing; name what to set or, with null, to unset")
	}
	if len(change) > MaxNodePairs {
		return implausible("%d meta, at most %d are allowed", len(change), MaxNodePairs)
	}
	for _, k := range sortedKeys(change) {
		switch v := change[k]; {
		case len(k) > MaxNodeKey:
			return implausible("meta %q: a name of %d bytes, at most %d are allowed", clip(k), len(k), MaxNodeKey)
		case !dottedWord(k):
			return implausible("meta %q: a name has letters, digits, underscores and dashes, begins with a letter or underscore, and may have such words with dots between them", clip(k))
		case v != nil && len(*v) > MaxNodeValue:
			return implausible("meta %q: a value of %d bytes, at most %d are allowed", clip(k), len(*v), MaxNodeValue)
		}
	}
	return nil
}

// dottedWord reports whether a name is one that HCL can read as an attribute, or several with dots between them.
func dottedWord(name string) bool {
	for word := range strings.SplitSeq(name, ".") {
		for i, c := range word {
			if c != '_' && !unicode.IsLetter(c) && (i == 0 || c != '-' && !unicode.IsDigit(c)) {
				return false
			}
		}
		if word == "" {
			return false
		}
	}
	return true
}
