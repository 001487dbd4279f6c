// Package layout has what the stores agree on about keys and calls: which names
// are accepted, the defaults of key names, the slot of a key in a Cluster, and the
// bounds of one script call.
package layout
