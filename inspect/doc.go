// Package inspect tells an operator what became of a network's presence: it reads the hub
// with what its user may read, and judges each link of the chain from the project to the
// addresses in the cells. The judging is pure: functions of a Sight, with no client in them.
package inspect
