// Package server implements the gRPC services of a node: Timers with its sessions,
// Operations, and health.
package server
