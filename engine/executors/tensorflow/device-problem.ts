import { messageOf } from '../../../base/error-text.js';

/** Messages of too little memory. CUDA's own code for it has underscores, and must not count as a lost device. */
const NO_MEMORY = /\bOOM\b|RESOURCE_EXHAUSTED|out[ _]of[ _]memory|failed to allocate|bad_alloc/i;
/** Messages of CUDA for a context that cannot be used any more, and of the driver for a GPU that is gone. */
const LOST =
  /CUDA_ERROR|cudaError|device\b.{0,40}\blost|illegal (memory access|address|instruction)|ILLEGAL_ADDRESS|launch failed|unspecified launch failure|fallen off the bus|uncorrectable ECC/i;

/** What the binding writes before what TensorFlow says. */
const PREFIX = /^(Session fail to run with error|Failed to load SavedModel): /;

export interface DeviceProblem {
  /** One sentence. */
  message: string;
  /** The device is lost, with all that was on it. */
  isLost: boolean;
}

/**
 * Makes one sentence of a TensorFlow error, whose message may name nodes over many lines.
 * @param what failed, as the sentence begins @param lessMemory what would take less memory, as it ends where there was too little
 */
export function problemOfDevice(what: string, error: unknown, lessMemory: string): DeviceProblem {
  const said = messageOf(error).replace(/\s+/g, ' ').trim().replace(PREFIX, '');
  if (NO_MEMORY.test(said)) {
    const message = `${what}: the device has no memory left for it (${said.slice(0, 200)}); ${lessMemory}.`;
    return { message, isLost: false };
  }
  if (LOST.test(said)) {
    const message = `${what}: the GPU is lost, with all that was on it (${said.slice(0, 200)}).`;
    return { message, isLost: true };
  }
  return { message: `${what} (${said.slice(0, 400)}).`, isLost: false };
}
