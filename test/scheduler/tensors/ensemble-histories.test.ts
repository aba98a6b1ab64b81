import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { graphProblem } from '../../../scheduler/tensors/ensemble-graph.js';
import { type ConfiguredMember, planEnsemble } from '../../../scheduler/tensors/ensemble-plan.js';
import { EnsembleState, wantedParts } from '../../../scheduler/tensors/ensemble-state.js';
import { draws } from '../../support/scale.js';
import { isWell, type PlainGraph, SlowEnsemble } from './oracle/slow-ensemble.js';

const tensorOf = (name: string) => ({ name, data_type: 'TYPE_INT32', dims: [1] });

function configOf({ inputs, outputs, steps }: PlainGraph) {
  return {
    name: 'e',
    max_batch_size: 0,
    input: inputs.map(tensorOf),
    output: outputs.map(tensorOf),
    ensemble_scheduling: {
      step: steps.map(({ takes, makes }, i) => ({
        model_name: `m${i}`,
        model_version: -1,
        input_map: Object.fromEntries(takes.map((tensor, k) => [`I${k}`, tensor])),
        output_map: Object.fromEntries(makes.map((tensor, k) => [`O${k}`, tensor])),
      })),
    },
  };
}

function memberOf({ takes, makes }: PlainGraph['steps'][number], i: number): ConfiguredMember {
  return {
    name: `m${i}`,
    max_batch_size: 0,
    input: takes.map((_, k) => tensorOf(`I${k}`)),
    output: makes.map((_, k) => tensorOf(`O${k}`)),
    model_transaction_policy: { decoupled: false },
  };
}

const NAMES = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
const name = fc.constantFrom(...NAMES);
const names = (minLength: number) => fc.uniqueArray(name, { minLength, maxLength: 3 });

/** Any graph of few tensors: most are not well. */
const anyGraph: fc.Arbitrary<PlainGraph> = fc.record({
  inputs: names(0),
  outputs: names(0),
  steps: fc.array(fc.record({ takes: names(0), makes: names(0) }), { maxLength: 4 }),
});

/** A graph that is well: each step takes what there is before it, and what no step takes is an output. */
const wellGraph: fc.Arbitrary<PlainGraph> = fc
  .record({
    numInputs: fc.integer({ min: 1, max: 3 }),
    steps: fc.array(
      fc.record({
        takes: fc.array(fc.nat(30), { minLength: 1, maxLength: 3 }),
        makes: fc.integer({ min: 1, max: 3 }),
      }),
      { minLength: 1, maxLength: 7 },
    ),
    more: fc.array(fc.nat(30), { maxLength: 2 }),
    order: fc.array(fc.nat(1000), { minLength: 7, maxLength: 7 }),
  })
  .map(({ numInputs, steps, more, order }) => {
    const tensors = Array.from({ length: numInputs }, (_, i) => `in${i}`);
    const made = steps.map(({ takes, makes }, i) => {
      const taken = [...new Set(takes.map((one) => tensors[one % tensors.length]!))];
      const own = Array.from({ length: makes }, (_, k) => `s${i}o${k}`);
      tensors.push(...own);
      return { takes: taken, makes: own };
    });
    const taken = new Set(made.flatMap(({ takes }) => takes));
    const inputs = tensors.slice(0, numInputs).filter((one) => taken.has(one));
    const results = tensors.slice(numInputs);
    const outputs = [
      ...new Set([
        ...results.filter((one) => !taken.has(one)),
        ...more.map((one) => results[one % results.length]!),
      ]),
    ];
    const shuffled = made.map((step, i) => [order[i]!, step] as const).sort(([a], [b]) => a - b);
    return { inputs, outputs, steps: shuffled.map(([, step]) => step) };
  });

describe('the graph of an ensemble', () => {
  it('is found well where everything can be made and nothing is in vain', () => {
    let well = 0;
    fc.assert(
      fc.property(fc.oneof(anyGraph, wellGraph), (graph) => {
        expect(graphProblem(configOf(graph)) === null).toBe(isWell(graph));
        if (isWell(graph)) well++;
      }),
      { numRuns: draws(300) },
    );
    expect(well).toBeGreaterThan(draws(80));
  });
});

type Event = { kind: 'arrive'; which: number } | { kind: 'finish'; which: number };
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('arrive' as const), which: fc.nat(100) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('finish' as const), which: fc.nat(100) }) },
);

describe('a request of an ensemble', () => {
  it('begins, runs and answers what it should in any order of what comes', () => {
    fc.assert(
      fc.property(
        wellGraph,
        fc.array(fc.nat(10), { maxLength: 3 }),
        fc.array(event, { maxLength: 60 }),
        (graph, wanted, events) => {
          const asked = [...new Set(wanted.map((one) => graph.outputs[one % graph.outputs.length]!))];
          const requested = asked.length === 0 ? null : asked;
          const plan = planEnsemble(configOf(graph), graph.steps.map(memberOf));
          const parts = wantedParts(plan, requested);
          const state = new EnsembleState(plan, parts);
          const slow = new SlowEnsemble(graph, requested ?? graph.outputs);
          const isWanted = parts.steps.flatMap((is, step) => (is ? [step] : []));
          expect(isWanted).toEqual(slow.wanted);
          for (const [tensor, uses] of parts.uses.entries()) {
            const told = (requested ?? graph.outputs).includes(plan.tensors[tensor]!) ? 1 : 0;
            const takers = isWanted.filter((step) =>
              graph.steps[step]!.takes.includes(plan.tensors[tensor]!),
            );
            expect(uses).toBe(takers.length + told);
          }
          const running: { step: number; iteration: number }[] = [];
          const arrive = (tensor: string) => {
            state.arrive(plan.tensors.indexOf(tensor));
            slow.arrive(tensor);
          };
          const compare = () => {
            const starts = state.ready();
            expect(starts.map(({ step, iteration }) => `${step}:${iteration}`).sort()).toEqual(slow.ready());
            running.push(...starts);
            expect(state.answers()).toEqual(slow.answers());
          };
          for (const input of graph.inputs) arrive(input);
          compare();
          for (const { kind, which } of events) {
            if (kind === 'arrive') {
              // A model that answers once more: all of its outputs come again.
              const step = isWanted[which % isWanted.length]!;
              for (const tensor of graph.steps[step]!.makes) arrive(tensor);
            } else if (running.length > 0) {
              const { step } = running.splice(which % running.length, 1)[0]!;
              for (const tensor of graph.steps[step]!.makes) arrive(tensor);
            }
            compare();
          }
          expect(state.unmet() !== null).toBe(slow.isUnmet);
        },
      ),
      { numRuns: draws(133) },
    );
  });

  it('is answered once and whole where each model answers once, whatever order they answer in', () => {
    fc.assert(
      fc.property(wellGraph, fc.array(fc.nat(100), { minLength: 10, maxLength: 10 }), (graph, order) => {
        const plan = planEnsemble(configOf(graph), graph.steps.map(memberOf));
        const parts = wantedParts(plan, null);
        const state = new EnsembleState(plan, parts);
        for (let tensor = 0; tensor < plan.numInputs; tensor++) state.arrive(tensor);
        const running = state.ready();
        const ran: number[] = [];
        for (let i = 0; running.length > 0; i++) {
          expect(state.answers()).toEqual([]);
          const { step, iteration } = running.splice(order[i % order.length]! % running.length, 1)[0]!;
          expect(iteration).toBe(0);
          ran.push(step);
          for (const [, tensor] of plan.steps[step]!.outputs) state.arrive(tensor);
          running.push(...state.ready());
        }
        expect(ran.sort((a, b) => a - b)).toEqual([...graph.steps.keys()]);
        expect(state.answers()).toEqual([0]);
        expect(state.unmet()).toBeNull();
      }),
      { numRuns: draws(100) },
    );
  });
});
