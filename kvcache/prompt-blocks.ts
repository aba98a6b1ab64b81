import type { ReuseKey } from './block-hashes.js';

/** The full blocks at the beginning of a prompt, as engines tell each other of them. */
export interface PromptBlocks extends ReuseKey {
  tokens: Int32Array;
}
