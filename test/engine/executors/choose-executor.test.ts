import { describe, expect, it } from 'vitest';
import { likelyExecutor, startOnExecutor } from '../../../engine/executors/choose-executor.js';
import {
  type ExecutorKind,
  type ExecutorName,
  ExecutorUnavailableError,
} from '../../../engine/executors/executor-kind.js';
import { AddonError } from '../../../engine/native/load-addon.js';

function kind(name: ExecutorName, problem: string | null = null): ExecutorKind {
  const never = () => Promise.reject(new Error('not in this test'));
  return {
    name,
    problem: async () => problem,
    computesWith: never,
    kvDtypeFor: () => 'f32',
    measure: never,
    open: never,
  };
}

const NO_GPU = 'TensorFlow sees no GPU.';
const NO_ADDON = 'The native addon could not be loaded.';
const nameOf = async ({ name }: ExecutorKind) => name;

describe('startOnExecutor', () => {
  it('takes the first that nothing is known against', async () => {
    const kinds = [kind('native'), kind('wasm')];
    expect(await startOnExecutor({}, nameOf, kinds)).toEqual({ started: 'native', fallback: null });
    expect(await startOnExecutor({ executor: 'auto' }, nameOf, kinds)).toMatchObject({ started: 'native' });
  });

  it('takes the one that is named, and says nothing of the others', async () => {
    const kinds = [kind('native', NO_ADDON), kind('wasm')];
    const named = await startOnExecutor({ executor: 'wasm' }, nameOf, kinds);
    expect(named).toEqual({ started: 'wasm', fallback: null });
  });

  it('goes on where one cannot run, with one line about each', async () => {
    const kinds = [kind('tensorflow', NO_GPU), kind('native', NO_ADDON), kind('wasm')];
    const { started, fallback } = await startOnExecutor({}, nameOf, kinds);
    expect(started).toBe('wasm');
    expect(fallback).toBe(`The wasm executor runs in the place of a faster one: ${NO_GPU} ${NO_ADDON}`);
  });

  it('goes on where one turns out not to run, and only then', async () => {
    const kinds = [kind('tensorflow'), kind('native')];
    const failing = (error: Error) => async (one: ExecutorKind) => {
      if (one.name === 'tensorflow') throw error;
      return one.name;
    };
    const missing = new ExecutorUnavailableError('libcudart.so.12 is missing.');
    expect(await startOnExecutor({}, failing(missing), kinds)).toEqual({
      started: 'native',
      fallback: expect.stringContaining('libcudart.so.12 is missing.'),
    });
    const other = new Error('Out of memory.');
    await expect(startOnExecutor({}, failing(other), kinds)).rejects.toBe(other);
    await expect(startOnExecutor({ executor: 'tensorflow' }, failing(missing), kinds)).rejects.toBe(missing);
  });

  it('fails with the reason where none can run, or the one that is named', async () => {
    const kinds = [kind('native', NO_ADDON)];
    await expect(startOnExecutor({}, nameOf, kinds)).rejects.toThrow(new AddonError(NO_ADDON));
    await expect(startOnExecutor({ executor: 'native' }, nameOf, kinds)).rejects.toBeInstanceOf(AddonError);
  });
});

describe('likelyExecutor', () => {
  it('finds native, which is built for these tests', async () => {
    expect(await likelyExecutor({})).toMatchObject({ kind: { name: 'native' }, fallback: null });
  });

  it.each(['tensorflow', 'wasm'] as const)('refuses %s by name while there is none', async (executor) => {
    await expect(likelyExecutor({ executor })).rejects.toThrow(
      `executor is refused: the ${executor} executor is not there yet in this version; take native, or leave it out.`,
    );
  });
});
