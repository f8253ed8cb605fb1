// Package cgroup keeps the processes of a task in control groups of their own,
// which limit what they use together and by which all of them can be killed.
//
// It works with the unified hierarchy (version 2), with the hierarchies of
// version 1, and with machines that have both: each controller is used where the
// kernel has mounted it. A Base is the directory of one agent in each hierarchy,
// a Group the directory of one task below it:
//
//	/sys/fs/cgroup/                 a mounted hierarchy
//	  nomadish.slice/               client { cgroup_parent }
//	    agent-0f3a91c2d4e5/         one agent (Base)
//	      <task>.scope/             one task (Group)
//
// A process is a member from its first instruction on. Version 2 lets a process be
// born into a group (CLONE_INTO_CGROUP). In version 1 a child is born where the
// thread that forks it is, so that thread enters the groups, forks, and goes back.
//
// A Group is data that survives the process that made it: another one that has its
// JSON form can kill and remove it. The package must never signal its own process,
// and never remove a group that has members.
package cgroup
