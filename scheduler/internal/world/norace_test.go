//go:build !race

package world

// worldSteps is how many edits a World of TestWorldStepByStep sees: there are a hundred.
const worldSteps = 1000
