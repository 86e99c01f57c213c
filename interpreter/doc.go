// Package interpreter is what Karmada asks about NetworkContexts: what a copy in a cell
// amounts to (Reflect), whether it is well (Health), and what the cells have together
// (Aggregate). These are pure functions; Handler serves them to Karmada's webhook client.
//
// The scripts in package lua say the same in Lua, for a control plane that cannot call a
// webhook. One table of cases, testdata/cases.yaml, holds both to the same answers.
//
// Cells are not trusted to be sane. Whatever a cell reports is read field by field: a value
// that cannot be what it should be is left out, and the fault is told with the field, the
// value and what is right. Nothing that reaches the hub's status can make the API server
// reject it, so one cell never hides the others.
package interpreter
