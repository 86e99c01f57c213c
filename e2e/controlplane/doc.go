// Package controlplane runs a whole Karmada as processes on the loopback interface: etcd,
// an API server and a controller manager for the hub, the platform, each project and each
// cell, Karmada's own components, and ours. All are built from Go modules. It is what
// `make up`, the demo, the e2e suite and the benchmarks run on.
package controlplane
