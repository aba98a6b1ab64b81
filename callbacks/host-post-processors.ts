import type { MessagePort } from 'node:worker_threads';
import type { PostProcessorRows } from './post-processor-call.js';

// Post-processors that are functions of the host's thread. The worker stops between the forward and the sampling of an
// iteration, and all calls of the iteration cross in one message:
//
//   worker   logits -> shared memory, `ask` ---------- waits at DONE ----------- logits <- shared memory, sampling
//   host                       call 0 | DONE = 1 | call 1 | DONE = 2 | ...
//
// A call that failed is reported by a message before DONE counts it. A worker that has waited too long for a
// call gives the memory up for good (LEFT) and takes other memory for its next iteration, so what the host
// still writes goes nowhere.
//
//   shared memory   DONE | LEFT | logits of call 0 | logits of call 1 | ...

/** Cells at the beginning of the shared memory, Int32: how many calls have ended, and whether the worker has left (1). */
export const DONE = 0;
export const LEFT = 1;
/** Bytes of these cells. */
export const CELL_BYTES = 2 * Int32Array.BYTES_PER_ELEMENT;

/** What the worker gets to call functions of the host. */
export interface HostPostProcessors {
  names: string[];
  port: MessagePort;
}

/** Rows of a request without the logits, which begin at value `first` after the cells. */
export interface AskedRows extends Omit<PostProcessorRows, 'view'> {
  first: number;
  length: number;
}

export interface AskedCall {
  name: string;
  rows: AskedRows[];
}

/** The calls of one iteration. */
export interface PostProcessorAsk {
  ask: number;
  calls: AskedCall[];
  /** The cells, followed by Float32 values. */
  memory: SharedArrayBuffer;
}

/** Why call `index` of an ask failed. */
export interface PostProcessorReply {
  ask: number;
  index: number;
  why: string;
}
