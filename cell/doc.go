// Package cell is the agent that runs in every cell, beside the copies that Karmada
// delivers there. It keeps a network's context from going while addresses of the network
// are out, answers NetworkInterfaceClaims, makes interfaces follow the network's MTU, and
// reports on each copy. It never allocates addresses, never decides whether a network may
// be used, and never reads Networks or Locations.
//
// # What holds a copy
//
// The finalizer [v1alpha.InUseFinalizer] is on a copy while one of these is true:
//
//   - A NetworkInterface of the network exists in the namespace, one that is being deleted
//     included. Its addresses are out, and an interface names no location, so it holds
//     every copy of its network in the namespace.
//   - A NetworkInterfaceClaim of the network is eligible, that is, it reads
//     NetworkAvailable=True or is about to. That answer is a promise: whoever allocates
//     may create an interface at any moment after reading it.
//   - A promise ended less than Options.AllocationGrace ago. No object tells that an
//     allocator has read a claim and not created the interface yet, so a promise binds for
//     that long after it was withdrawn or its claim was deleted.
//
// Hence the order in which one network is worked on, always by one worker: refusals are
// written, the finalizer is added, only then are promises given, and a finalizer is
// removed in a pass that finds no promise to withdraw. A promise is therefore never read
// on a copy that is not held, and an allocator that acts within the grace on what it read
// always finds the copy still there, whatever the hub does meanwhile.
//
// That a finalizer was added is not enough for a promise. The API server reads an object,
// sees that it has no finalizers, and then deletes it, whatever was added in between. A
// deletion on its way takes as long as the API server does, so a finalizer first settles,
// for some times the time that adding it took and a third of a second at the least, and
// promises are given once the API server was asked after that and still has the copy.
//
// A claim pins nothing for ever. The hub counts interfaces only when it decides whether a
// context may go. Once it deletes the copy, every claim of the network is refused, the
// grace passes, and the copy goes unless an interface has appeared. A finalizer cannot be
// added to an object that is being deleted, and needs not be: what reads True there was
// promised while the copy lived, and so the finalizer is on it already.
//
// An interface that was created without a claim holds its network's copy from the moment
// in which the agent sees it; nothing can hold for it earlier.
//
// # Where the cache is not enough
//
// Reads come from watches and may be old. Three rules make that harmless. A finalizer is
// added and removed with the resourceVersion that the decision was made from. Before it is
// removed, the interfaces are listed from the API server itself: one created a moment ago
// may not have arrived yet. And an object that the agent wrote is not judged again before
// the cache shows that write; its event brings the network back.
//
// What the agent remembers beside the cache, the end of promises, it may lose at any time:
// a process that has just started removes no finalizer before one grace has passed.
package cell
