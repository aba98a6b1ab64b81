import type { Iteration } from './iteration.js';

/** The steps that the executor computes while the loop goes on; other parts must not interfere with them. */
export class RunningSteps {
  /** The iteration of each step, oldest first. Set by the runner of calls. */
  iterations: readonly Iteration[] = [];

  get count(): number {
    return this.iterations.length;
  }
}
