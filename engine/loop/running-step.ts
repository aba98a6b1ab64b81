import type { Iteration } from './iteration.js';

/** The step that the executor computes while the loop goes on; other parts must not interfere with it. */
export class RunningStep {
  /** The iteration of the step; null while none runs. Set by the runner of calls. */
  iteration: Iteration | null = null;
}
