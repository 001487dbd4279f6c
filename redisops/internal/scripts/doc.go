// Package scripts loads and runs the Lua scripts of the stores, and reads their
// replies: numbers, instants, packed answers, and what the errors of Redis mean.
// It also keeps subscriptions to channels.
//
// Every script but a bare one begins with lua/prelude.lua of this package, then
// come the parts that it names, then its own file. Parts and files are in the
// folder lua of the store that embeds them.
package scripts
