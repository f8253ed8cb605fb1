package scheduler

import (
	"iter"

	"github.com/nomadish/nomadish/scheduler/internal/admit"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/explain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/judge"
	"github.com/nomadish/nomadish/scheduler/internal/pass"
	"github.com/nomadish/nomadish/scheduler/internal/raise"
	"github.com/nomadish/nomadish/scheduler/internal/requestkey"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// World is what the scheduler sees: the nodes, what they have and what allocations use of
// it. It is immutable, shares structure with the Worlds that it came from, and may be read
// by many goroutines.
type World = world.World

// Edit is a private, mutable form of a World, for one goroutine. Abandoning it costs
// nothing.
type Edit = world.Edit

// Vector is an amount of CPU (MHz), memory and disk (MiB).
type Vector = world.Vector

// NewWorld returns a World without nodes.
func NewWorld() *World { return world.New() }

// ClaimView is what has become of what an owner owns.
type ClaimView = claim.View

// ClaimViews returns what has become of what owners own, by owner; of one alone if it is named. Bound cells are listed if details are
// requested.
func ClaimViews(w *World, owner string, details bool) map[string]*ClaimView {
	return claim.Views(w, owner, details)
}

// ClaimUses returns how many allocations of an owner use its cells, and one of them.
func ClaimUses(w *World, owner string) (n int, first string) { return claim.Uses(w, owner) }

// NodeBinding is the part of a bound cell that is on one node.
type NodeBinding = world.NodeBinding

// OwnerKind is an owner with a kind of devices of a pool.
type OwnerKind = claim.OwnerKind

// OpportunisticDevices returns how many devices of each kind those who own cells use without a claim, in whole or in part. It walks all nodes.
func OpportunisticDevices(w *World) map[OwnerKind]int { return claim.OpportunisticDevices(w) }

// ResolveCells finds the chains and the pins of quotas on a World, and writes them into the quotas. sites are the levels above nodes. It
// returns an error of CodeBadRequest if a kind, a level, a size or a pin names nothing.
func ResolveCells(w *World, list []*structs.CellQuota, sites []structs.TopologyLevel) error {
	return admit.ResolveCells(w, list, sites)
}

// LaterClaims is what all are to own at a time to come, by owner.
type LaterClaims = admit.LaterClaims

// AdmitLater returns an error of CodeConflict if the cluster could not hold, with nothing bound, what all are to own at some time to come.
func AdmitLater(w *World, times []LaterClaims) error { return admit.Later(w, times) }

// AdmitClaims returns an error if an owner cannot be given these claims beside what others own and use: of CodeConflict if cells
// are short, naming their level and how many; of CodeBadRequest if it never can.
func AdmitClaims(w *World, owner string, claims []structs.CellClaim) error {
	return admit.Now(w, owner, claims)
}

// OwnedCells returns what an owner of cells was given, a line for each kind, without who uses it.
func OwnedCells(w *World, owner string) []*structs.CellStatus { return claim.Given(w, owner) }

// WholeDevices reports whether instances of a group request devices that can be owned: whole ones, of one kind.
func WholeDevices(g *structs.TaskGroup) bool { return feasible.MayClaim(g) }

// CellOfSlot returns the quota cell that a slot of a type with GPUs is, without a count; nil: no node states such slots. It returns an error of
// CodeBadRequest if it is not known which cells are meant.
func CellOfSlot(w *World, t structs.SlotType) (*structs.CellClaim, error) {
	return admit.CellOfSlot(w, t)
}

// SetClaims states all that an owner owns. What it used beyond it runs on without a claim: see Edit.LostClaims.
func SetClaims(e *Edit, owner string, claims []structs.CellClaim) { world.SetClaims(e, owner, claims) }

// RestoreClaims states what everybody owns, by owner, of an Edit that knows of no claims yet.
func RestoreClaims(e *Edit, all map[string][]structs.CellClaim) { world.RestoreClaims(e, all) }

// SetProject states what a project is now; nil: there is none of the name. What used slots that it has no more runs on without: see
// Edit.LostClaims. It reports whether that is anything new.
func SetProject(e *Edit, name string, to *structs.ProjectNow) bool {
	return world.SlotEdit{E: e}.SetProject(name, to)
}

// RestoreProjects states all projects of an Edit that knows none yet, and has all nodes and allocations.
func RestoreProjects(e *Edit, all []*structs.ProjectNow) { world.SlotEdit{E: e}.Restore(all) }

// Submission returns what the submission check finds of a job, one of the Submission constants; "" if it names no project.
func Submission(w *World, job *structs.Job) string { return standing.Check(w, job) }

// Standing returns the standing of a job's requests, as far as no claim may hold them, one of the Standing constants.
func Standing(w *World, job *structs.Job) int { return standing.Of(w, job) }

// Input is what one evaluation is decided with, beside the World.
type Input = search.Input

// Prepared remembers what does not change from one evaluation to the next. It makes
// deciding faster and changes no answer. It is for one goroutine at a time.
type Prepared = search.Prepared

// NewPrepared returns a Prepared that remembers nothing.
func NewPrepared() *Prepared { return search.NewPrepared() }

// Typical is what jobs of the cluster typically request, for which the policy least-fragmentation
// keeps room.
type Typical = search.Typical

// NewTypical returns a Typical of a list of weighted requests.
func NewTypical(requests []structs.TypicalRequest) *Typical { return search.NewTypical(requests) }

// Schedule decides one evaluation. The World stays as it is, and the plan is the same
// whenever World, evaluation and Input are. It returns an error if the evaluation or
// Input.NewID is missing.
func Schedule(w *World, eval *structs.Evaluation, in Input) (*structs.Plan, error) {
	return decide.Schedule(w, eval, in)
}

// Judge checks a plan against the World as the edit has it, and applies the valid part to the
// edit. It returns that part, the nodes on which something was refused, and the reason of the
// first refusal.
func Judge(e *Edit, plan *structs.Plan) (reservations *structs.JudgedPlan, refusedNodes []string, reason string) {
	return judge.Judge(e, plan)
}

// KeepCells keeps the cells bound that placements are to use by their claims, while others of the same owner leave them. The function that it returns ends
// that; it is to be called when all are placed.
func KeepCells(e *Edit, place []*structs.PlacementBatch) (end func()) {
	return judge.KeepCells(e, place)
}

// ShareOn returns the share that World.Share is once the edit has ended.
func ShareOn(e *Edit, pool, namespace string) int { return world.Base(e).Share(pool, namespace) }

// UserShareOn returns the share that World.UserShare is once the edit has ended.
func UserShareOn(e *Edit, pool, user string) int { return world.Base(e).UserShare(pool, user) }

// EditInPlace begins an edit that changes the Worlds which it returned before, of which nobody may keep one.
func EditInPlace(w *World) *Edit { return world.InPlace(w) }

// Pass decides evaluations one after the other on one World that moves on with each of
// them. It is for one goroutine.
type Pass = pass.Pass

// NewPass begins a pass on a World, which stays as it is.
func NewPass(w *World) *Pass { return pass.New(w) }

// NewPassInPlace begins a pass whose World changes in place with each decision: who has it must let go of it before the next.
func NewPassInPlace(w *World) *Pass { return pass.InPlace(w) }

// RequestKey is what the groups of a job that wait need, as far as it can be known without looking
// at the cluster: which requests fail alike, and which nodes may help at all.
type RequestKey = requestkey.Key

// RequestKeyOf returns the request key of the pending groups of a job, with the job's
// allocations. holds reports that nodes are reserved for the job.
func RequestKeyOf(
	w *World, job *structs.Job, groups []string, has []*structs.Allocation, config structs.SchedulerConfiguration, reservations bool,
) RequestKey {
	return requestkey.Of(w, job, groups, has, config, reservations)
}

// Room is what is left of room on all nodes while nothing comes free: which request keys it may help.
type Room = requestkey.Room

// NewRoom returns what is left before anything is placed.
func NewRoom() *Room { return requestkey.NewRoom() }

// Entitlement is what the groups of a job may claim of what their namespace owns.
type Entitlement = feasible.Entitlement

// EntitlementOf returns what groups of a job may claim, whether or not their namespace has any of it free.
func EntitlementOf(w *World, job *structs.Job, groups []string) Entitlement {
	return feasible.EntitlementOf(w, job, groups)
}

// Entitled returns how many instances of a group could be entitled at most (semantics part 0, rule 6). It counts to most.
func Entitled(w *World, job *structs.Job, group string, most int) int {
	return feasible.Entitled(w, job, group, most)
}

// EntitledKind returns where the entitled instances of a group rank, one of the ClaimRank constants.
func EntitledKind(w *World, job *structs.Job, group string) int {
	c := feasible.EntitlementOf(w, job, []string{group})
	return c.Kind()
}

// WithoutClaim returns a group of a job that can use no claim on cells, whatever its namespace owns, and why; "": all can that need one.
func WithoutClaim(job *structs.Job) (group, why string) { return feasible.WithoutClaim(job) }

// BeyondShares returns in words which groups of an input's job request more processor or memory than belongs to their devices.
func BeyondShares(w *World, in Input) []string { return claim.BeyondShares(w, &in) }

// Raise is allocations of a job that may be raised.
type Raise = raise.Allocs

// ProjectOwner returns the name by which a project is among the owners of whom something may be raised; MayRaise reports whether anything is.
func ProjectOwner(project string) string { return raise.OfProject(project) }

// MayRaise reports whether an owner, a namespace or a project by ProjectOwner, has anything free that its running instances might use in place.
func MayRaise(w *World, owner string) bool { return raise.MayRaise(w, owner) }

// DueRaises returns what of an owner may be raised now, the oldest first, and allowed.
func DueRaises(w *World, owner string, allowed func(job structs.NamespacedID, allocID string) bool) []Raise {
	return raise.Due(w, owner, allowed)
}

// UsableNodes yields the ready nodes that a group of a job could use by what they are,
// whatever is free there.
func UsableNodes(w *World, job *structs.Job, group *structs.TaskGroup) iter.Seq[*structs.Node] {
	return feasible.UsableNodes(w, job, group)
}

// TooLarge states why no instance of a group of a job can start on the nodes that are ready, whatever ends there; "": it may be able to.
func TooLarge(w *World, job *structs.Job, group *structs.TaskGroup) string {
	return feasible.TooLarge(w, job, group)
}

// ExplainInput is what a job is explained with, beside the World.
type ExplainInput = explain.Input

// Explain returns why a job is not placed, and the smallest changes that would place it. It returns
// an error if the job cannot be decided.
func Explain(w *World, in ExplainInput) (*structs.JobExplanation, error) {
	return explain.Job(w, in)
}

// SubmissionAdvice returns what to do about a job that the submission check does not recognise, to follow structs.SubmissionText; "": nothing needs
// to be done.
func SubmissionAdvice(w *World, job *structs.Job) string { return explain.SubmissionAdvice(w, job) }

// AllocInput is what an allocation is explained with.
type AllocInput = explain.AllocInput

// ExplainAlloc returns why an allocation runs where it does, or was stopped.
func ExplainAlloc(in AllocInput) *structs.AllocExplanation { return explain.Alloc(in) }
