import { describe, expect, it } from 'vitest';
import type { ExecutorName } from '../../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import type { Executor } from '../../../engine/executors/executor.js';
import { type ExecutorKind, ExecutorUnavailableError } from '../../../engine/executors/executor-kind.js';
import { AddonError } from '../../../engine/executors/native/load-addon.js';
import { likelyExecutor, requireSupport, startOnExecutor } from '../../../engine/kinds/choose-executor.js';
import type { NetworkPlan } from '../../../network/plan.js';

function kind(name: ExecutorName, problem: string | null = null): ExecutorKind {
  const never = () => Promise.reject(new Error('not in this test'));
  return {
    name,
    problem: async () => problem,
    supports: () => null,
    computesWith: never,
    threadsFor: () => 1,
    kvDtypeFor: () => 'f32',
    measure: never,
    open: never,
  };
}

const NO_GPU = 'TensorFlow sees no GPU.';
const NO_ADDON = 'The native addon could not be loaded.';
const nameOf = async ({ name }: ExecutorKind) => name;

describe('startOnExecutor', () => {
  it('passes over one that cannot compute the network', async () => {
    const lacking = { ...kind('native'), supports: () => 'The native executor has no such op.' };
    const start = async (one: ExecutorKind) => {
      requireSupport(one, {} as NetworkPlan);
      return one.name;
    };
    expect(await startOnExecutor({}, start, [lacking, kind('wasm')])).toEqual({
      started: 'wasm',
      fallback: 'The wasm executor runs in the place of a faster one: The native executor has no such op.',
    });
    await expect(startOnExecutor({ executor: 'native' }, start, [lacking])).rejects.toThrow('has no such op');
  });

  it('takes the first that nothing is known against', async () => {
    const kinds = [kind('native'), kind('wasm')];
    expect(await startOnExecutor({}, nameOf, kinds)).toEqual({ started: 'native', fallback: null });
    expect(await startOnExecutor({ executor: 'auto' }, nameOf, kinds)).toMatchObject({ started: 'native' });
  });

  it('opens one otherwise where auto has come to it, if that makes a difference', async () => {
    const open = async () => ({ name: 'tensorflow' }) as Executor;
    const openAutomatically = async () => {
      throw new ExecutorUnavailableError(NO_GPU);
    };
    const kinds = [{ ...kind('tensorflow'), open, openAutomatically }, kind('native')];
    const opened = async (one: ExecutorKind) => {
      if (one.name !== 'native') await one.open({} as never, {} as never);
      return one.name;
    };
    expect(await startOnExecutor({}, opened, kinds)).toEqual({
      started: 'native',
      fallback: `The native executor runs in the place of a faster one: ${NO_GPU}`,
    });
    expect(await startOnExecutor({ executor: 'tensorflow' }, opened, kinds)).toMatchObject({
      started: 'tensorflow',
    });
  });

  it('tells what another could use of this machine where auto passes it over, and only then', async () => {
    const hint = async () => 'There is a GPU.';
    const passed = { ...kind('tensorflow'), isAutomatic: async () => false, hint };
    expect(await startOnExecutor({}, nameOf, [passed, kind('native')])).toEqual({
      started: 'native',
      fallback: 'The native executor computes. There is a GPU.',
    });
    expect(await startOnExecutor({}, nameOf, [passed, kind('native', NO_ADDON), kind('wasm')])).toEqual({
      started: 'wasm',
      fallback: `The wasm executor runs in the place of a faster one: ${NO_ADDON} There is a GPU.`,
    });
    const quiet = { started: 'native', fallback: null };
    expect(await startOnExecutor({ executor: 'native' }, nameOf, [passed, kind('native')])).toEqual(quiet);
    const nothing = { ...passed, hint: async () => null };
    expect(await startOnExecutor({}, nameOf, [nothing, kind('native')])).toEqual(quiet);
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

describe('options that an executor has no use for', () => {
  const kinds = [kind('tensorflow'), kind('native', NO_ADDON), kind('wasm')];

  it.each([
    [{ executor: 'wasm', threads: 2 }, 'threads is refused: the wasm executor', 'it computes in one thread'],
    [{ executor: 'tensorflow', instructionSet: 'avx2' }, 'instructionSet is refused', 'native executor'],
    [{ executor: 'tensorflow', computeWeight: 2 }, 'computeWeight is refused', 'no turns with other models'],
    [{ executor: 'wasm', enableTrtOverlap: true }, 'enableTrtOverlap is refused', 'would be hidden'],
    [{ executor: 'wasm', kvDtype: 'bf16' }, 'kvDtype is refused', 'keeps the KV cache as f32'],
    [{ executor: 'wasm', kvDtype: 'int8' }, 'kvDtype is refused', 'keeps the KV cache as f32'],
    [{ executor: 'tensorflow', kvDtype: 'int8' }, 'kvDtype is refused', 'keeps the KV cache as f32 or bf16'],
  ] as const)('are refused where it is named: %o', async (wish, start, why) => {
    const refusal = await startOnExecutor(wish, nameOf, kinds).catch((error: Error) => error);
    expect(refusal).toBeInstanceOf(ParameterError);
    expect((refusal as Error).message).toMatch(new RegExp(`^${start}.*${why}; leave it out`));
  });

  it('are told where auto has come to it', async () => {
    const { started, fallback } = await startOnExecutor({ threads: 2 }, nameOf, kinds.slice(1));
    expect([started, fallback]).toEqual([
      'wasm',
      `The wasm executor runs in the place of a faster one: ${NO_ADDON} threads has no effect there: it computes in one thread.`,
    ]);
    expect(await startOnExecutor({ threads: 1, computeWeight: 1 }, nameOf, [kind('wasm')])).toEqual({
      started: 'wasm',
      fallback: null,
    });
  });

  it('lead auto to another executor where they would change what is computed, or to an error', async () => {
    const bf16 = { kvDtype: 'bf16' } as const;
    expect(await startOnExecutor(bf16, nameOf, [kind('wasm'), kind('native')])).toEqual({
      started: 'native',
      fallback: expect.stringContaining('The wasm executor cannot take the kvDtype that is given'),
    });
    await expect(startOnExecutor(bf16, nameOf, kinds.slice(1))).rejects.toThrow(
      /^No executor can run this model\. The native addon .* The wasm executor cannot take the kvDtype/,
    );
  });
});

describe('likelyExecutor', () => {
  it('finds native, which is built for these tests', async () => {
    expect(await likelyExecutor({})).toMatchObject({ kind: { name: 'native' }, fallback: null });
  });

  it('passes over one that auto does not take here, and says nothing of it', async () => {
    const kinds = [{ ...kind('tensorflow'), isAutomatic: async () => false }, kind('native')];
    expect(await startOnExecutor({}, nameOf, kinds)).toEqual({ started: 'native', fallback: null });
    const named = await startOnExecutor({ executor: 'tensorflow' }, nameOf, kinds);
    expect(named).toEqual({ started: 'tensorflow', fallback: null });
  });
});
