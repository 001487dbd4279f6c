// Package storetest has helpers for the tests of several stores: checks of the
// headers of scripts, and a client hook that compares every script call with the
// header of its script.
package storetest
