// Package backtest compares forecasts of the queue with what then happens: it replays a trace on the parts of a leader in virtual time, has a forecast
// made at a fixed interval, and looks at each job that waits when it starts in truth. Beside it are two other estimates: one that keeps whole nodes for who
// waits, and one by what runs alone.
//
// The same trace, nodes and configuration give the same figures. It must never help a forecast: that knows the state as a server's does, and nothing of
// how long what runs will run.
package backtest
