//go:build race

package world

// worldSteps is how many edits a World of TestWorldStepByStep sees under the race
// detector, which is many times slower.
const worldSteps = 60
