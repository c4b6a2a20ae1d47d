// Package install puts AHP into the hook configuration of other agents and takes it
// out again.
//
// It guarantees that a file of somebody else keeps every byte that is not ours; that
// nothing is written before all of a plan could be made; that a file which does not
// parse, or that leads out of the project, is refused and left as it is; that
// installing twice is installing once; that uninstalling gives back the bytes before
// where nothing has changed since, and else removes our entries alone; and that the
// installed line answers for ahp whatever becomes of it.
//
// Do not assume that a host runs what was installed: trust that only a person can
// give is in [Plan.Remains], and what a host does with its own configuration is for
// the doctor to see.
package install
