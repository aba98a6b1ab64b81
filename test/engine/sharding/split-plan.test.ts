import { afterAll, describe, expect, test } from 'vitest';
import type { ExchangeOp, RankPlan } from '../../../engine/sharding/rank-plan.js';
import { type GroupShape, RankPlanError, sizeOf } from '../../../engine/sharding/rank-shape.js';
import { splitPlan } from '../../../engine/sharding/split-plan.js';
import { TinyNetworks } from '../../../tools/support/tiny-network.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());
const network = networks.make({ numLayers: 3, numHeads: 9, numKvHeads: 3, bias: true });
const { plan } = network;

const plansOf = (shape: GroupShape): RankPlan[] =>
  Array.from({ length: sizeOf(shape) }, (_, rank) => splitPlan(network, shape, rank));
const kinds = ({ ops }: RankPlan) => ops.map(({ op }) => op);

describe('the plans of ranks', () => {
  test('each row of a split weight is one rank’s, except for copies of KV heads', () => {
    const plans = plansOf({ tensorParallelSize: 3, pipelineParallelSize: 1 });
    for (const { name, kind, rows, columns } of plan.weights) {
      const parts = plans.flatMap(({ weights }) =>
        weights.flatMap(({ part }) => (part?.tensor === name ? [part] : [])),
      );
      if (parts.length === 0) continue;
      const owned = parts.flatMap(({ slices }) =>
        slices.flatMap(({ first, count }) => Array.from({ length: count }, (_, i) => first + i)),
      );
      const whole = kind === 'matrix' ? rows : columns;
      expect(owned.sort((a, b) => a - b)).toEqual(Array.from({ length: whole }, (_, i) => i));
    }
  });

  test('a layer has four exchanges, and the output goes to rank 0 alone', () => {
    const [first, second] = plansOf({ tensorParallelSize: 2, pipelineParallelSize: 1 }) as [
      RankPlan,
      RankPlan,
    ];
    expect(kinds(first).filter((op) => op === 'exchange')).toHaveLength(4 * 3 + 1);
    expect(first.ops.at(-1)).toMatchObject({ op: 'exchange', readers: [0] });
    expect(first.logits).toBeGreaterThanOrEqual(0);
    expect(second.logits).toBe(-1);
    expect(first.caches.map(({ kvHeads }) => kvHeads)).toEqual([2, 2, 2]);
    expect(second.caches.map(({ kvHeads }) => kvHeads)).toEqual([1, 1, 1]);
  });

  test('stages have the layers one after the other, hand one value over, and rank 0 makes the output', () => {
    const [first, second] = plansOf({ tensorParallelSize: 1, pipelineParallelSize: 2 }) as [
      RankPlan,
      RankPlan,
    ];
    // The output layer counts as much as a layer.
    expect(first.caches).toHaveLength(1);
    expect(second.caches).toHaveLength(2);
    expect(kinds(first)[0]).toBe('embedding');
    expect(kinds(first).slice(-4)).toEqual(['exchange', 'exchange', 'rmsNorm', 'linear']);
    expect([kinds(second)[0], ...kinds(second).slice(-2)]).toEqual(['exchange', 'selectRows', 'exchange']);
    expect(kinds(second)).not.toContain('embedding');
    const origins = [...first.origins, ...second.origins].filter((origin) => origin >= 0);
    expect(origins.sort((a, b) => a - b)).toEqual(plan.ops.map((_, index) => index));
    // What goes back is a hidden row.
    const back = second.ops.at(-1) as ExchangeOp;
    expect(second.values[back.value]).toMatchObject({ rows: 'logits', width: 48 });
    expect([first.logits, second.logits]).toEqual([first.values.length - 1, -1]);
  });

  test('stages of several ranks leave the output to the last one', () => {
    const plans = plansOf({ tensorParallelSize: 2, pipelineParallelSize: 2 });
    const products = plans.map(({ weights }) => weights.some(({ part }) => part?.tensor === 'output'));
    expect(plans[0]!.weights.length).toBeGreaterThan(0);
    expect(products.slice(0, 2)).toEqual([false, false]);
    for (const { ops } of plans.slice(2)) expect(ops.at(-1)).toMatchObject({ op: 'exchange', readers: [0] });
    expect(plans[0]!.ops.at(-1)).toMatchObject({ op: 'exchange', readers: [0] });
  });

  test('mixtures of experts are dealt with their layers', () => {
    const experts = networks.make({ numLayers: 3, experts: { count: 4, used: 2, normalize: true } });
    const shape = { tensorParallelSize: 1, pipelineParallelSize: 2 };
    const plans = [0, 1].map((rank) => splitPlan(experts, shape, rank));
    const origins = plans.flatMap((one) => one.origins.filter((origin) => origin >= 0));
    expect(origins.sort((a, b) => a - b)).toEqual(experts.plan.ops.map((_, index) => index));
    for (const { ops, values, weights, caches } of plans) {
      const mixtures = ops.filter((op) => op.op === 'experts');
      expect(mixtures).toHaveLength(caches.length);
      const names = new Set(weights.map(({ name }) => name));
      for (const { gateUp, down, input, scores, output, residual } of mixtures) {
        for (const name of [...gateUp, ...down]) expect(names).toContain(name);
        expect([input, scores, output].map((value) => values[value]!.width)).toEqual([48, 4, 48]);
        expect(residual).toBe(output);
      }
    }
    // Each matrix of an expert lies in one rank.
    const matrices = plans.flatMap(({ weights }) => weights.filter(({ name }) => name.includes('.experts.')));
    expect(new Set(matrices.map(({ name }) => name)).size).toBe(matrices.length);
    expect(matrices).toHaveLength(3 * 4 * 2);
  });

  test('mixtures of experts are refused where ranks would share them', () => {
    const experts = networks.make({ experts: { count: 4, used: 2, normalize: true } });
    const split = () => splitPlan(experts, { tensorParallelSize: 2, pipelineParallelSize: 1 }, 0);
    expect(split).toThrow(RankPlanError);
    expect(split).toThrow(
      'This model has mixtures of experts, whose layers ranks cannot share: tensorParallelSize must be 1, but it is 2; pipelineParallelSize deals whole layers.',
    );
    const caches = experts.plan.caches.map((cache, i) => ({ ...cache, keyDim: cache.keyDim * (i + 1) }));
    const uneven = { ...experts, plan: { ...experts.plan, caches } };
    expect(() => splitPlan(uneven, { tensorParallelSize: 2, pipelineParallelSize: 1 }, 0)).toThrow(
      'Layers of this model have different heads, which ranks cannot share.',
    );
  });

  test('states of sequences are refused where ranks would share them', () => {
    const states = networks.make({ stateful: true });
    const split = () => splitPlan(states, { tensorParallelSize: 2, pipelineParallelSize: 1 }, 0);
    expect(split).toThrow(RankPlanError);
    expect(split).toThrow(
      'Layers of this model keep states of sequences, which ranks cannot share: tensorParallelSize must be 1, but it is 2; pipelineParallelSize deals whole layers.',
    );
  });

  test('stages have the states of their layers', () => {
    const network = networks.make({ stateful: true, numLayers: 5 });
    const plans = [0, 1, 2].map((rank) =>
      splitPlan(network, { tensorParallelSize: 1, pipelineParallelSize: 3 }, rank),
    );
    expect(plans.flatMap(({ states }) => states!)).toEqual(network.plan.states);
    for (const { ops, states, weights } of plans) {
      const kept = ops.flatMap((op) => ('state' in op ? [op.state] : []));
      expect(kept).toEqual(states!.map((_, index) => index));
      expect(weights.filter(({ name }) => name.endsWith('rate.bias'))).toHaveLength(states!.length / 2);
    }
  });

  test('what cannot be parted is refused', () => {
    expect(() => splitPlan(network, { tensorParallelSize: 10, pipelineParallelSize: 1 }, 0)).toThrow(
      'This model has 9 heads of attention, which 10 ranks cannot share; at most 9 are possible.',
    );
    expect(() => splitPlan(network, { tensorParallelSize: 1, pipelineParallelSize: 4 }, 0)).toThrow(
      'This model has 3 layers, which 4 stages cannot share; at most 3 are possible.',
    );
  });
});
