// Package denials has no code but its tests. They make the calls of the stores as Redis users
// that lack the right to one key each: a call either succeeds or has written nothing, because
// Redis does not roll a script back.
package denials
