// Program probe reads the state of NVIDIA GPUs from the driver's own library,
// libnvidia-ml.so.1, and prints it on standard output: one snapshot (package nvml) as
// one line of JSON for each line on standard input. It ends with its input.
//
// It is a program of its own because the agent is a static binary, which cannot
// load a library, and so that a driver that hangs or crashes takes the probe with
// it and not the agent. It must never decide anything: what is healthy and what to
// do about it is the agent's. The names, numbers and layouts are those of NVIDIA's
// public header nvml.h.
package main
