package structs

// AttrDriverSuspend names the node attribute that states whether a driver can suspend its tasks
// there, so that an allocation of it can be suspended: "1" or "0".
func AttrDriverSuspend(driver string) string { return "driver." + driver + ".suspend" }

// What a node reports about the limits that the driver raw_exec enforces there: a list of "memory", "pids" and "cpu", or
// NoLimits; and why it is not all of them. A node of an earlier version reports nothing, and limits nothing.
const (
	AttrRawExecLimits       = "driver.raw_exec.limits"
	AttrRawExecLimitsReason = "driver.raw_exec.limits_reason"
	NoLimits                = "none"
)

// CannotSuspend reports whether a node reports that a driver cannot suspend its tasks. A node that
// does not report it (an older client) may be able to.
func (n *Node) CannotSuspend(driver string) bool {
	can, reported := n.Attributes[AttrDriverSuspend(driver)]
	return reported && can != "1"
}
