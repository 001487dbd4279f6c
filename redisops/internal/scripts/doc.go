// Package scripts loads and runs the Lua scripts of the stores, and reads their
// replies: numbers, instants, packed answers, and Redis errors. It also maintains
// subscriptions to channels.
//
// Every script except a bare one consists of lua/prelude.lua of this package, the
// parts that it names, and its own file. Parts and files are in the folder lua of
// the store that embeds them.
package scripts
