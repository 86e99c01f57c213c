// Package crds holds the CustomResourceDefinitions made from package v1alpha.
package crds

import "embed"

// Files are the definitions, one a file, as controller-gen writes them.
//
//go:embed *.yaml
var Files embed.FS
