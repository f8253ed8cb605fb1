package main

// cluster is the table of the whole: real servers, asked over HTTP.
func cluster() []Row {
	return []Row{
		row("one job of 10,000 instances: all committed, 1k nodes", "WholeJob/(nodes=1k)", "s-committed", "12–14", 2, 0.5),
		row("and all running, 1k nodes", "WholeJob/(nodes=1k)", "s-running", "28–31", 6, 2),
		row("one job of 10,000 instances: all committed, 5k nodes", "WholeJob/(nodes=5k)", "s-committed", "24", 2, 0.5),
		row("and all running, 5k nodes", "WholeJob/(nodes=5k)", "s-running", "not within 75", 8, 3),
		reaching("1,000 jobs of one GPU each, registered at once", "WholeJobs/(.*)", "jobs/s", "340–380 / 133–153 / 15 (1k / 10k / 50k)", 2000, 5000),
		row("registration on disk, one client: median", "Whole(Registration)", "ms-p50", "1.9", 1.5, 1),
		row("registration on disk, one client: 99th percentile", "Whole(Registration)", "ms-p99", "8", 8, 4),
		row("100 jobs/s of 10 instances for 60 s: committed, 99th percentile", "Whole(Steady)", "ms-p99", "", 100, 25),
		row("agent -dev: started, until it leads", "Whole(Dev)", "ms-leader", "1,700", 1000, 300),
		row("agent -dev: registered, until the first task is finished", "Whole(Dev)", "ms-finished", "1,000", 500, 150),
		row("100 real one-shot processes: all complete", "Whole(Processes)", "s-complete", "5.4–7.7", 2, 1),
		row("leader killed (-9), until the next write is accepted: median of 5", "(LeaderKilled)", "s/median", "3.3", 3, 1.5),
		row("node lost (-9), until its work runs elsewhere", "Whole(NodeLost)", "s-elsewhere", "", 10, 5),
		row("server memory, 1,000 nodes and 10,000 allocations", "Whole(Memory)", "MiB-at-most", "1,500–1,800", 400, 200),
		row("50,000 nodes and 1,000,000 allocations in one server", "WholeMillion/(.*)", "GiB-at-most", "", 4, 2),
		row("snapshot of that", "WholeMillion/(.*)", "s-save", "", 60, 15),
		row("restore of that", "WholeMillion/(.*)", "s-restore", "", 60, 15),
		row("10,000 blocking queries waiting: CPU, % of a core", "Whole(Queries)", "%-of-a-core", "", 2, 2),

		info("a server's CPU for one of the 1,000 jobs", "WholeJobs/(.*)", "µs-of-the-server/job"),
		info("what it allocates for one", "WholeJobs/(.*)", "KiB/job"),
		info("100 jobs/s of 10 instances: median", "Whole(Steady)", "ms-p50"),
		info("instances committed per second on the way to 1,000,000", "WholeMillion/(.*)", "instances/s"),
		info("memory of that server when it has been idle for a while", "WholeMillion/(.*)", "GiB"),
		info("and the most it ever had when the snapshot is saved", "WholeMillion/(.*)", "GiB-when-saved"),
		info("size of that snapshot", "WholeMillion/(.*)", "MiB-snapshot"),
		info("memory of a server that holds 10,000 queries", "Whole(Queries)", "MiB"),
	}
}
