// Package rpcmode serves the engine as line-delimited JSON on two streams, so that
// a program in any language can run Abhed as a subprocess: abhed rpc.
//
// It guarantees that every request is answered once, with its id as it came; that
// a line which is no request is answered by an error line and changes nothing else;
// that events are written in the order of the record, all of a prompt before its
// reply, and that none is dropped for a slow reader: the run waits for it, and the
// record says so. An approval counts only for the hash that it names. When Serve
// returns, the session is closed and its record complete.
//
// What has to reach even a slow reader soon overtakes the lines that wait to be
// written: interrupted, settled, and errors about a line.
//
// Do not assume that replies come in the order of the requests: id tells which is
// which. Do not assume either that a goroutine in In.Read has ended when Serve
// returns, nor one in Out.Write if the reader took nothing any more: nothing can
// wake those but the streams themselves.
package rpcmode
