import { describe, expect, it } from 'vitest';
import { ExecutorUnavailableError } from '../../../../engine/executors/executor-kind.js';
import {
  type ClaimScene,
  claimTensorFlow,
  releaseTensorFlow,
} from '../../../../engine/executors/tensorflow/thread-claim.js';

/** The environment that all threads see. */
function scenes() {
  const environment: ClaimScene['environment'] = {};
  return {
    environment,
    at: (threadId: number, nowMs: number, isLoaded: boolean | null): ClaimScene => ({
      environment,
      threadId,
      nowMs,
      isLoaded,
    }),
  };
}

const taken = (scene: ClaimScene) => {
  expect(() => claimTensorFlow(scene)).toThrow(ExecutorUnavailableError);
  expect(() => claimTensorFlow(scene)).toThrow(/^TensorFlow computes in one thread of a process, .*\.$/);
};

describe('TensorFlow', () => {
  it('is one thread’s at a time, while that loads it and while it has it', () => {
    const { at } = scenes();
    const loaded = claimTensorFlow(at(1, 0, false));
    taken(at(2, 5, false));
    loaded();
    taken(at(2, 1_000_000, true));
    taken(at(2, 1_000_000, null));
  });

  it('is taken again by the thread that has it, for a draft model', () => {
    const { at } = scenes();
    claimTensorFlow(at(1, 0, false))();
    expect(() => claimTensorFlow(at(1, 50, true))()).not.toThrow();
    taken(at(2, 60, true));
  });

  it('is the next thread’s where the one that had it is gone', () => {
    const { at } = scenes();
    claimTensorFlow(at(1, 0, false))();
    expect(() => claimTensorFlow(at(2, 1000, false))).not.toThrow();
  });

  it('is the next one’s too where the one before died while it loaded, after a while', () => {
    const { at } = scenes();
    claimTensorFlow(at(1, 0, false));
    taken(at(2, 9_000, false));
    expect(() => claimTensorFlow(at(2, 11_000, false))).not.toThrow();
  });

  it('is given back, also where nobody can tell what a process has loaded', () => {
    const { at, environment } = scenes();
    claimTensorFlow(at(1, 0, null))();
    taken(at(2, 20_000, null));
    releaseTensorFlow(environment, 2);
    taken(at(2, 20_000, null));
    releaseTensorFlow(environment, 1);
    expect(() => claimTensorFlow(at(2, 20_001, null))).not.toThrow();
  });

  it('that the program itself has loaded is not touched', () => {
    taken(scenes().at(1, 0, true));
  });
});
