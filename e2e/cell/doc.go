// Package cell tries the cell agent, as a process of its own and with no more permissions
// than it asks for, against a real API server that stands for a cell. What Karmada does
// there, creating, editing and deleting copies, the tests do.
package cell
