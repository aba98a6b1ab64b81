import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CacheShape } from '../../kvcache/cache-shape.js';
import { equalCaches } from '../../network/cache-layers.js';
import { type ExpertOptions, NetworkBuilder } from '../../network/network-builder.js';
import type { NetworkPlan, PlanOp } from '../../network/plan.js';
import { valuesOf } from '../../network/slot-assignment.js';
import { draws } from '../support/scale.js';

const attention = { numLayers: 1, numHeads: 2, rotaryDim: 4 };
const caches = equalCaches(1, 1, 4);

function builder(vocabSize = 10, hiddenSize = 8) {
  return new NetworkBuilder({ architecture: 'test', vocabSize, hiddenSize, attention, caches });
}

/** Runs the plan over tags: each write marks its slot with the value; each read must still find its own mark there. */
function checkSlots(plan: NetworkPlan): void {
  const owner = new Map<number, number>();
  for (const op of plan.ops) {
    const { reads, writes } = valuesOf(op);
    for (const value of reads) expect(owner.get(plan.values[value]!.slot)).toBe(value);
    for (const value of writes) {
      const { slot, rows, width } = plan.values[value]!;
      for (const read of reads) if (read !== value) expect(plan.values[read]!.slot).not.toBe(slot);
      expect(plan.slots[slot]!.rows).toBe(rows);
      expect(plan.slots[slot]!.width).toBeGreaterThanOrEqual(width);
      owner.set(slot, value);
    }
  }
  expect(owner.get(plan.values[plan.logits]!.slot)).toBe(plan.logits);
}

describe('NetworkBuilder', () => {
  it('never gives a slot away while its value is still read, in any network', () => {
    const step = fc.record({
      width: fc.integer({ min: 1, max: 40 }),
      from: fc.nat(),
      kind: fc.constantFrom('linear', 'gated', 'add', 'experts'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const net = builder();
        const x = net.embedding(net.matrix('embedding', [{ name: 'e', rows: 10, columns: 8 }]));
        const values = [x];
        for (const [i, { width, from, kind }] of steps.entries()) {
          const input = values[from % values.length]!;
          const named = (name: string, rows: number, columns: number) =>
            net.matrix(name, [{ name, rows, columns }]);
          const matrix = (rows: number) => named(`w${i}`, rows, input.width);
          if (kind === 'linear') values.push(net.linear(input, { weight: matrix(width) }));
          else if (kind === 'gated') {
            values.push(net.gatedLinear(input, { weight: matrix(2 * width), activation: 'silu' }));
          } else if (input !== x && kind === 'experts') {
            const scores = net.linear(input, { weight: matrix(2) });
            net.addExperts(x, input, scores, {
              gateUp: [0, 1].map((expert) => named(`g${i}.${expert}`, 2 * width, input.width)),
              down: [0, 1].map((expert) => named(`d${i}.${expert}`, 8, width)),
              used: 1,
              normalize: true,
              activation: 'silu',
            });
          } else if (input !== x) net.addLinear(x, input, { weight: matrix(8) });
        }
        const output = net.matrix('output', [{ name: 'o', rows: 10, columns: 8 }]);
        checkSlots(net.build(net.linear(net.selectRows(x), { weight: output })));
      }),
      { numRuns: draws(100) },
    );
  });

  it('stacks sources and reuses slots', () => {
    const net = builder();
    const x = net.embedding(net.matrix('embedding', [{ name: 'e', rows: 10, columns: 8 }]));
    const sources = ['q', 'k', 'v'].map((name, i) => ({ name, rows: i === 0 ? 8 : 4, columns: 8 }));
    const norm = net.vector('norm', [{ name: 'n', columns: 8 }]);
    const qkv = net.linear(net.rmsNorm(x, norm, 1e-5), { weight: net.matrix('qkv', sources) });
    net.addLinear(x, net.attention(qkv, 0, 0.5), {
      weight: net.matrix('o', [{ name: 'o', rows: 8, columns: 8 }]),
    });
    const plan = net.build(net.linear(net.selectRows(x), { weight: 'embedding' }));
    checkSlots(plan);
    expect(plan.weights.find(({ name }) => name === 'qkv')).toMatchObject({ rows: 16, columns: 8, sources });
    expect(plan.slots.filter(({ rows }) => rows === 'tokens').length).toBe(3);
  });

  it('takes layers that keep different things, each with its own width of queries, keys and values', () => {
    const shapes: CacheShape[] = [
      { kind: 'keysAndValues', kvHeads: 2, keyDim: 4, valueDim: 6 },
      { kind: 'keysAndValues', kvHeads: 1, keyDim: 8, valueDim: 8 },
    ];
    const header = { architecture: 'test', vocabSize: 10, hiddenSize: 8, caches: shapes };
    const net = new NetworkBuilder({ ...header, attention: { ...attention, numLayers: 2 } });
    const x = net.embedding(net.matrix('embedding', [{ name: 'e', rows: 10, columns: 8 }]));
    const qkvOf = (name: string, rows: number) =>
      net.linear(x, { weight: net.matrix(name, [{ name, rows, columns: 8 }]) });
    const [narrow, wide] = [qkvOf('narrow', 2 * 4 + 2 * (4 + 6)), qkvOf('wide', 2 * 8 + 8 + 8)];
    expect(net.attention(narrow, 0, 1).width).toBe(2 * 6);
    expect(net.attention(wide, 1, 1).width).toBe(2 * 8);
    expect(() => net.attention(narrow, 1, 1)).toThrow(/qkv is 28 wide/);
    const scales = net.vector('scales', [{ name: 's', columns: 6 }]);
    expect(() => net.rmsNormHeads(narrow, 0, 2, scales, 1e-5)).toThrow(/6 scales for a width of 4 or 8/);
    expect(() => new NetworkBuilder({ ...header, attention })).toThrow(/2 caches for 1 layers/);
  });

  /** Three experts, 6 wide inside, of rows of 8; `changes` replace weights by others. */
  function withExperts(changes: Partial<ExpertOptions> = {}, numScores = 3) {
    const net = builder();
    const matrix = (name: string, rows: number, columns: number) =>
      net.matrix(name, [{ name, rows, columns }]);
    const x = net.embedding(matrix('embedding', 10, 8));
    const input = net.linear(x, { weight: matrix('input', 8, 8) });
    const scores = net.linear(x, { weight: matrix('router', numScores, 8) });
    const options: ExpertOptions = {
      gateUp: [0, 1, 2].map((expert) => matrix(`gateUp${expert}`, 12, 8)),
      down: [0, 1, 2].map((expert) => matrix(`down${expert}`, 8, 6)),
      used: 2,
      normalize: false,
      activation: 'silu',
    };
    matrix('narrow', 8, 5);
    net.vector('bias4', [{ name: 'bias4', columns: 4 }]);
    for (const columns of [3, 8, 12]) net.vector(`bias${columns}`, [{ name: `bias${columns}`, columns }]);
    net.addExperts(x, input, scores, { ...options, ...changes });
    return net.build(net.linear(net.selectRows(x), { weight: 'embedding' }));
  }

  it('adds mixtures of experts to a sum in place', () => {
    const plan = withExperts();
    checkSlots(plan);
    expect(plan.ops[3]).toEqual({
      op: 'experts',
      input: 1,
      scores: 2,
      output: 0,
      gateUp: ['gateUp0', 'gateUp1', 'gateUp2'],
      down: ['down0', 'down1', 'down2'],
      used: 2,
      normalize: false,
      activation: 'silu',
      residual: 0,
    });
    expect(valuesOf(plan.ops[3]!)).toEqual({ reads: [1, 2, 0], writes: [0] });
    expect(valuesOf({ ...plan.ops[3]!, residual: null } as PlanOp)).toEqual({ reads: [1, 2], writes: [0] });
  });

  it('writes of a rule of experts what is not usual', () => {
    const usual = withExperts({ scoring: 'softmax', factor: 1, sumEpsilon: 0 });
    expect(JSON.stringify(usual)).toBe(JSON.stringify(withExperts()));
    const rule = {
      normalize: true,
      scoring: 'sigmoid',
      groups: { count: 3, used: 2, top: 1 },
      factor: 2.5,
      sumEpsilon: 1e-6,
    } as const;
    expect(withExperts({ ...rule, choiceBias: 'bias3' }).ops[3]).toMatchObject({
      ...rule,
      choiceBias: 'bias3',
    });
  });

  it('writes a rule by sparsemixer, of two experts alone', () => {
    const rule = { normalize: false, scoring: 'sparsemixer', jitter: 0.01 } as const;
    expect(withExperts(rule).ops[3]).toMatchObject({ used: 2, ...rule });
    expect(() => withExperts({ ...rule, used: 1 })).toThrow(/1 experts of 1 groups by sparsemixer/);
    expect(() => withExperts({ ...rule, normalize: true })).toThrow(/2 normalized experts of 1 groups by/);
    expect(() => withExperts({ ...rule, groups: { count: 3, used: 2, top: 1 } })).toThrow(
      /2 experts of 3 groups by sparsemixer/,
    );
    expect(() => withExperts({ ...rule, sumEpsilon: 0.1 })).toThrow(/0\.1 in a sum of shares/);
    expect(() => withExperts({ ...rule, choiceBias: 'bias3' })).toThrow(
      /a bias of the choice by sparsemixer/,
    );
    for (const jitter of [-0.1, 1.5, Number.NaN])
      expect(() => withExperts({ ...rule, jitter })).toThrow(`a jitter of ${jitter}`);
    expect(() => withExperts({ jitter: 0.01 })).toThrow(/a jitter of 0\.01 without sparsemixer/);
  });

  it('writes what experts have beside their matrices', () => {
    const biases = { gateUp: ['bias12', 'bias12', 'bias12'], down: ['bias8', 'bias8', 'bias8'] };
    const clamped = { alpha: 1.702, limit: 7 };
    const options = { biases, clamped, activation: 'none' } as const;
    expect(withExperts(options).ops[3]).toMatchObject(options);
    expect(() => withExperts({ biases: { ...biases, down: ['bias8'] } })).toThrow(
      /3 and 1 biases for 3 experts/,
    );
    expect(() => withExperts({ biases: { gateUp: biases.down, down: biases.down } })).toThrow(
      /bias8: 8 entries for 12 rows/,
    );
    expect(() => withExperts({ clamped })).toThrow(/a clamp at 7 by 1.702 of silu/);
    for (const limit of [0, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => withExperts({ clamped: { ...clamped, limit }, activation: 'none' })).toThrow(
        `a clamp at ${limit} by 1.702 of none`,
      );
  });

  it('writes a score without a value of each head of queries', () => {
    const net = builder();
    const matrix = (name: string, rows: number) => net.matrix(name, [{ name, rows, columns: 8 }]);
    const x = net.embedding(matrix('embedding', 10));
    const qkv = net.linear(x, { weight: matrix('qkv', 16) });
    for (const columns of [2, 3]) net.vector(`sinks${columns}`, [{ name: 's', columns }]);
    net.attention(qkv, 0, 1, { sinkLogits: 'sinks2' });
    expect(() => net.attention(qkv, 0, 1, { sinkLogits: 'sinks3' })).toThrow(/sinks3: 3 entries for 2 heads/);
    const plan = net.build(net.linear(net.selectRows(x), { weight: 'embedding' }));
    expect(plan.ops.find(({ op }) => op === 'attention')).toMatchObject({ sinkLogits: 'sinks2' });
  });

  it('refuses experts that do not fit together', () => {
    expect(() => withExperts({}, 4)).toThrow(/scores of 4 and 3 ways down for 3 experts/);
    expect(() => withExperts({ down: ['down0', 'down1'] })).toThrow(
      /scores of 3 and 2 ways down for 3 experts/,
    );
    expect(() => withExperts({ gateUp: [], down: [] })).toThrow(/for 0 experts/);
    expect(() => withExperts({ used: 0 })).toThrow(/0 of 3 experts/);
    expect(() => withExperts({ used: 4 })).toThrow(/4 of 3 experts/);
    const groups = { count: 3, used: 1, top: 1 } as const;
    expect(() => withExperts({ groups, used: 2 })).toThrow(/2 of 1 experts/);
    expect(() => withExperts({ groups: { ...groups, count: 2 } })).toThrow(
      /3 experts in 2 groups of one size/,
    );
    expect(() => withExperts({ groups: { ...groups, used: 4 } })).toThrow(/4 of 3 groups of experts/);
    expect(() => withExperts({ groups: { ...groups, top: 2 } })).toThrow(
      /the 2 highest of the 1 experts of a group/,
    );
    expect(() => withExperts({ factor: 0 })).toThrow(/shares times 0/);
    expect(() => withExperts({ sumEpsilon: 0.1 })).toThrow(/0\.1 in a sum of shares/);
    expect(() => withExperts({ choiceBias: 'bias4' })).toThrow(/bias4: 4 entries for 3 experts/);
    expect(() => withExperts({ choiceBias: 'down0' })).toThrow(/down0/);
    expect(() => withExperts({ down: ['down0', 'narrow', 'down2'] })).toThrow(
      /narrow: \[8 x 5\] in place of \[8 x 6\]/,
    );
    expect(() => withExperts({ gateUp: ['gateUp0', 'gateUp1', 'down2'] })).toThrow(
      /down2: \[8 x 6\] in place of \[12 x 8\]/,
    );
    expect(() => withExperts({ gateUp: ['gateUp0', 'gateUp1', 'nowhere'] })).toThrow(
      /nowhere is not a matrix/,
    );
  });

  it('refuses experts that do not fit together, and adds the others to their residual', () => {
    const net = builder();
    const x = net.embedding(net.matrix('embedding', [{ name: 'e', rows: 10, columns: 8 }]));
    const matrix = (name: string, rows: number, columns: number) =>
      net.matrix(name, [{ name, rows, columns }]);
    const scores = net.linear(x, { weight: matrix('router', 2, 8) });
    const gateUp = [matrix('gateUp.0', 12, 8), matrix('gateUp.1', 12, 8)];
    const down = [matrix('down.0', 8, 6), matrix('down.1', 8, 6)];
    const experts = { gateUp, down, used: 1, normalize: true, activation: 'silu' } as const;
    const add = (change: object, sum = x, of = scores) =>
      net.addExperts(sum, x, of, { ...experts, ...change });
    const odd = matrix('odd', 14, 8);
    expect(() => add({}, x, x)).toThrow(/scores of 8 and 2 ways down for 2 experts/);
    expect(() => add({ down: down.slice(1) })).toThrow(/scores of 2 and 1 ways down for 2 experts/);
    for (const used of [0, 3, 0.5]) expect(() => add({ used })).toThrow(`${used} of 2 experts`);
    expect(() => add({ gateUp: [gateUp[0], odd] })).toThrow(/odd: \[14 x 8\] in place of \[12 x 8\]/);
    expect(() => add({}, scores)).toThrow(/down\.0: \[8 x 6\] in place of \[2 x 6\]/);
    expect(() => add({}, net.selectRows(x))).toThrow(/output of experts does not fit the residual/);
    expect(() => add({ down: ['norm', 'norm'] })).toThrow(/norm is not a matrix/);
    add({});
    const plan = net.build(net.linear(net.selectRows(x), { weight: 'embedding' }));
    checkSlots(plan);
    expect(plan.ops.find(({ op }) => op === 'experts')).toMatchObject({ output: 0, residual: 0, used: 1 });
  });

  it('refuses what does not fit together', () => {
    const net = builder();
    const x = net.embedding(net.matrix('embedding', [{ name: 'e', rows: 10, columns: 8 }]));
    const wide = net.matrix('wide', [{ name: 'w', rows: 3, columns: 9 }]);
    const odd = net.matrix('odd', [{ name: 'w', rows: 3, columns: 8 }]);
    const bias = net.vector('bias', [{ name: 'b', columns: 2 }]);
    expect(() => net.linear(x, { weight: wide })).toThrow(/wide: 9 columns for a width of 8/);
    expect(() => net.linear(x, { weight: odd, bias })).toThrow(/bias: 2 entries for 3 rows/);
    expect(() => net.gatedLinear(x, { weight: odd, activation: 'silu' })).toThrow(/cannot be halved/);
    expect(() => net.addLinear(x, x, { weight: odd })).toThrow(/residual/);
    expect(() => net.linear(x, { weight: 'nowhere' })).toThrow(/nowhere is not a matrix/);
    expect(() => net.linear(x, { weight: bias })).toThrow(/bias is not a matrix/);
    expect(() => net.attention(x, 0, 1)).toThrow(/qkv is 8 wide/);
    expect(() => net.matrix('odd', [{ name: 'w', rows: 3, columns: 8 }])).toThrow(/declared twice/);
    expect(() => net.build(x)).toThrow(/logits/);
    const uneven = [
      { name: 'a', rows: 1, columns: 8 },
      { name: 'b', rows: 1, columns: 9 },
    ];
    expect(() => net.matrix('uneven', uneven)).toThrow(/differ in columns/);
  });
});
