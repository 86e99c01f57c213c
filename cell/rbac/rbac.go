// Package rbac holds the permissions that the cell agent needs, made from the markers in
// package cell.
package rbac

import _ "embed"

// Roles are a ClusterRole for the cell and a Role for the namespace of the agent's lease,
// as YAML documents.
//
//go:embed role.yaml
var Roles []byte
