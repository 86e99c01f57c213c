// Package charts holds what is installed where.
package charts

import "embed"

// Hub is the chart for the Karmada API server.
//
//go:embed all:network-presence-hub
var Hub embed.FS
