// Package storetest has what the tests of several stores need: checks of the
// headers of scripts, and a client hook that compares every script call with the
// header of its script.
package storetest
