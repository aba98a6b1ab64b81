import type { Iteration } from './iteration.js';

/** The step that the executor computes while the loop goes on, of which everybody else has to keep clear. */
export class RunningStep {
  /** The iteration that it belongs to; null while none runs. Set by who runs calls. */
  iteration: Iteration | null = null;
}
