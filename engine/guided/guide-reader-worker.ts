import { type MessagePort, workerData } from 'node:worker_threads';
import { compileGuide } from './compile-guide.js';
import { READING, REQUEST_BELL, type ReadingRequest } from './guide-messages.js';

export interface GuideReaderData {
  /** The port to the thread that follows guides. */
  follower: MessagePort;
  control: SharedArrayBuffer;
}

/**
 * Reads guides for the thread that follows them, so that slow reading keeps no mask waiting. Automata are flat tables, which
 * are transferred.
 */
const { follower, control: shared } = workerData as GuideReaderData;
const control = new Int32Array(shared);
follower.on('message', (request: ReadingRequest) => {
  Atomics.store(control, READING, request.first + 1);
  const reply = compileGuide(request);
  Atomics.store(control, READING, 0);
  const { bytes, empty, calls } = reply.automaton ?? {};
  const tables = [bytes, empty, calls].flatMap((ways) => (ways === undefined ? [] : Object.values(ways)));
  follower.postMessage(
    reply,
    tables.map(({ buffer }) => buffer as ArrayBuffer),
  );
  Atomics.add(control, REQUEST_BELL, 1);
  Atomics.notify(control, REQUEST_BELL);
});
