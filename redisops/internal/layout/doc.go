// Package layout has what the stores share about keys and calls: the names that are
// accepted, the type of key names and their defaults, the slot of a key in a
// Cluster, and the bounds of one script call.
package layout
