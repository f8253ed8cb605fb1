package structs

// What gossip knows of a server.
const (
	MemberAlive   = "alive"
	MemberLeaving = "leaving"
	MemberLeft    = "left"
	MemberFailed  = "failed"
)

// What is done with keys of the gossip.
const (
	KeyInstall = "install" // it decrypts
	KeyUse     = "use"     // it encrypts
	KeyRemove  = "remove"
	KeyList    = "list"
)

// The pools that keys are changed in.
const (
	PoolServers = "servers" // all pools that servers alone are in
	PoolClients = "clients"
)
