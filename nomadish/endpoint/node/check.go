package node

import (
	"strings"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// checkNode refuses a node that cannot be registered as it describes itself. structs/nodelimits.go bounds how much it may report.
func checkNode(n *structs.Node) error {
	switch {
	case n == nil:
		return structs.Errorf(structs.CodeBadRequest, "the request has no Node")
	case n.ID == "" || len(n.ID) > 64:
		return structs.Errorf(structs.CodeBadRequest, "node ID %q: a UUID is needed", structs.CutText(n.ID, rpc.MaxNamed))
	case n.SecretID == "":
		return structs.Errorf(structs.CodeBadRequest, "node %s has no SecretID", n.ID)
	case n.Name == "":
		return structs.Errorf(structs.CodeBadRequest, "node %s has no Name", n.ID)
	case n.NodeResources == nil:
		return structs.Errorf(structs.CodeBadRequest, "node %s has no NodeResources", n.ID)
	case n.NodePool == structs.NodePoolAll:
		return structs.Errorf(structs.CodeBadRequest, "node %s: every node is in pool %q already", n.ID, n.NodePool).WithHint("name another node_pool")
	case n.NodePool != "" && !structs.ValidNodePool(n.NodePool):
		return structs.Errorf(structs.CodeBadRequest, "node %s: node_pool %q: must be 1 to 128 letters, digits, dashes or underscores",
			n.ID, structs.CutText(n.NodePool, rpc.MaxNamed))
	}
	if err := n.CheckLimits(); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "node %s (%s) reports what no machine is: %w", structs.CutText(n.Name, rpc.MaxNamed), n.ID, err).
			WithHint("it stays out of the cluster until its client reports less")
	}
	if err := checkDevices(n); err != nil {
		return err
	}
	switch n.Status {
	case structs.NodeStatusInit, structs.NodeStatusReady:
		return nil
	}
	return structs.Errorf(structs.CodeBadRequest, "node %s: status %q: allowed are %q and %q", n.ID, n.Status,
		structs.NodeStatusInit, structs.NodeStatusReady)
}

// maxComplaint bounds the answer to a node about its devices, in bytes.
const maxComplaint = 2 << 10

// checkDevices refuses devices that no machine can have: what stands in no tree would
// be given to two at once, or never.
func checkDevices(n *structs.Node) error {
	refuse := func(why string) error {
		if len(why) > maxComplaint {
			why = strings.ToValidUTF8(why[:maxComplaint], "") + " …"
		}
		return structs.Errorf(structs.CodeBadRequest, "node %s (%s) reports devices that no machine can have: %s", n.Name, n.ID, why).
			WithHint("it stays out of the cluster until its client reports them as a tree")
	}
	for _, d := range n.NodeResources.Devices {
		if d == nil {
			return refuse("a group of devices is empty")
		}
	}
	if err := n.NodeResources.ValidateTopology(); err != nil {
		return refuse(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}
