package world

import (
	"cmp"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/devicetree"
	"github.com/nomadish/nomadish/structs"
)

// WholeDevice is a whole device, in thousandths.
const WholeDevice = structs.DeviceShareWhole

// DeviceUsage is what one allocation holds of one device.
type DeviceUsage struct {
	ID    string // unique on the node
	Share int32  // thousandths
}

func compareUsage(a, b DeviceUsage) int {
	return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Share, b.Share))
}

// DeviceTree is the devices of one vendor and type of a node, in their places.
type DeviceTree = devicetree.Tree
