import type { Socket } from 'node:net';

/** The signal of each connection that has asked for an inference. */
const signals = new WeakMap<Socket, AbortSignal>();

/**
 * Aborted when the client leaves. The requests of a connection, which come one after the other, share it: a signal takes some
 * microseconds to make, and the HTTP library's own makes a whole request of the web's kind for it.
 * @returns null without a connection
 */
export function leavingSignal(socket: Socket): AbortSignal;
export function leavingSignal(socket: Socket | undefined): AbortSignal | null;
export function leavingSignal(socket: Socket | undefined): AbortSignal | null {
  if (socket === undefined) return null;
  const known = signals.get(socket);
  if (known !== undefined) return known;
  const leaving = new AbortController();
  socket.once('close', () => leaving.abort());
  if (socket.destroyed) leaving.abort();
  signals.set(socket, leaving.signal);
  return leaving.signal;
}
