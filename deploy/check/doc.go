// Package check tests the files of deploy/: the manifests for Kubernetes are built and
// decoded strictly into the types of its API, the Helm chart is rendered and compared with
// them, and the compose file is loaded as Docker does. It is a module of its own, for these libraries.
package check
