import { describe, expect, it } from 'vitest';
import type { UniformPlan } from '../../../../engine/executors/cache-layers.js';
import {
  cpuRowDevice,
  filledRows,
  type RowDevice,
  rowRuleOf,
} from '../../../../engine/executors/tensorflow/row-rule.js';

/** A network with one matrix, and an activation of values so wide. */
const planOf = (columns: number, width: number) =>
  ({
    attention: { headDim: 64 },
    ops: [{ op: 'linear', input: 0, output: 1, weight: 'w', bias: null, activation: 'silu', residual: null }],
    values: [
      { rows: 'tokens', width: columns, slot: 0 },
      { rows: 'tokens', width, slot: 1 },
    ],
    weights: [{ name: 'w', kind: 'matrix', rows: width, columns, sources: [] }],
  }) as unknown as UniformPlan;
const rule = (device: RowDevice, threads = 2, columns = 576, width = 1536) =>
  rowRuleOf(planOf(columns, width), device, { threads, unitPlaces: 64 });
const filled = (counts: number[], of: ReturnType<typeof rule>) =>
  counts.map((count) => filledRows(count, of));

describe('rows of a step', () => {
  it('are four at least on AVX-512, and no more than 96 where sums are long', () => {
    expect(filled([1, 4, 5, 1000], rule('avx512'))).toEqual([4, 4, 5, 1000]);
    expect(rule('avx512').most).toBe(Infinity);
    expect(rule('avx512', 16, 2048).most).toBe(96);
  });

  it('are sixes on AVX2, and threads share whole sixes of them', () => {
    expect(filled([1, 6, 7, 48, 49, 73], rule('avx2', 1))).toEqual([6, 6, 12, 48, 72, 144]);
    expect(filled([1, 6, 13, 48, 49, 73], rule('avx2', 4))).toEqual([12, 12, 18, 48, 72, 144]);
    expect([1, 2, 4].map((threads) => rule('avx2', threads).most)).toEqual([216, 216, 216]);
    expect(rule('avx2', 3)).toMatchObject({ attentionRows: 6, attentionProducts: 3 });
  });

  it('are always 48 on AVX2 with more than four threads', () => {
    for (const threads of [5, 6, 8, 16]) {
      expect(rule('avx2', threads).most).toBe(48);
      expect(filled([1, 48], rule('avx2', threads))).toEqual([48, 48]);
    }
  });

  it('of attention are more where heads are narrow on AVX2, whose kernels for small products differ', () => {
    const rows = (headDim: number, unitPlaces: number) =>
      rowRuleOf({ ...planOf(576, 1536), attention: { headDim } } as unknown as UniformPlan, 'avx2', {
        threads: 2,
        unitPlaces,
      }).attentionRows;
    expect([rows(8, 64), rows(32, 64), rows(64, 64), rows(128, 64), rows(64, 33)]).toEqual([
      36, 12, 6, 6, 12,
    ]);
  });

  it('fill whole vectors where an activation is of another width', () => {
    expect(filled([1, 17], rule('avx512', 2, 24, 40))).toEqual([4, 18]);
    expect(filled([1, 17], rule('avx512', 2, 24, 67))).toEqual([16, 32]);
    expect(filled([1, 49], rule('avx2', 2, 24, 67))).toEqual([48, 144]);
    expect(rule('avx2', 2, 24, 67).most).toBe(144);
    expect(rule('avx2', 6, 24, 67).most).toBe(48);
  });

  it('fill whole vectors where there are other numbers of experts, or widths inside of them', () => {
    const mixture = (count: number, inner: number, activation = 'silu') => {
      const plan = {
        ops: [{ op: 'experts', input: 0, scores: 1, output: 0, down: ['d'], activation }],
        values: [{ width: 64 }, { width: count }],
        weights: [{ name: 'd', kind: 'matrix', rows: 64, columns: inner }],
      };
      return rowRuleOf(plan as unknown as UniformPlan, 'avx512', { threads: 2, unitPlaces: 64 }).multiple;
    };
    expect([mixture(64, 32), mixture(8, 32), mixture(6, 32), mixture(64, 24), mixture(6, 40)]).toEqual([
      1, 2, 8, 2, 8,
    ]);
    expect(mixture(64, 24, 'none')).toBe(1);
  });

  it('are as they come where nobody asks for their bits', () => {
    expect(filled([1, 5, 1000], rule('any', 2, 24, 67))).toEqual([4, 5, 1000]);
  });
});

describe('the kernels of a CPU', () => {
  const avx512 = new Set(['avx2', 'avx512f', 'avx512bw', 'avx512dq', 'avx512vl']);

  it('are those of its instructions, as far as the environment allows them', () => {
    expect(cpuRowDevice({}, avx512)).toBe('avx512');
    expect(cpuRowDevice({}, new Set(['avx2', 'avx512f']))).toBe('avx2');
    expect(cpuRowDevice({}, new Set())).toBe('avx2');
    expect(cpuRowDevice({ ONEDNN_MAX_CPU_ISA: 'AVX2' }, avx512)).toBe('avx2');
    expect(cpuRowDevice({ DNNL_MAX_CPU_ISA: 'avx512_core' }, avx512)).toBe('avx512');
    expect(cpuRowDevice({ TF_ENABLE_ONEDNN_OPTS: '0' }, avx512)).toBe('avx2');
  });

  it('may be asked to be fast and nothing else', () => {
    expect(cpuRowDevice({ SKEIN_TENSORFLOW_ROWS: 'free' }, avx512)).toBe('any');
    expect(cpuRowDevice({ SKEIN_TENSORFLOW_ROWS: 'own' }, avx512)).toBe('avx512');
    expect(() => cpuRowDevice({ SKEIN_TENSORFLOW_ROWS: 'fast' }, avx512)).toThrow(
      'SKEIN_TENSORFLOW_ROWS is "fast"; it must be own or free.',
    );
  });
});
