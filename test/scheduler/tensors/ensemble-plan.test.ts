import { describe, expect, it } from 'vitest';
import {
  type ConfiguredEnsemble,
  type ConfiguredStep,
  type ConfiguredTensor,
  graphProblem,
} from '../../../scheduler/tensors/ensemble-graph.js';
import { type ConfiguredMember, planEnsemble } from '../../../scheduler/tensors/ensemble-plan.js';
import { EnsembleState, wantedParts } from '../../../scheduler/tensors/ensemble-state.js';

/** `A B -> C` of a model m0, and so on; inputs and outputs of the models are I0, I1, ... and O0, O1, ... */
function ensemble(
  inputs: string,
  outputs: string,
  steps: readonly string[],
  fields: Partial<ConfiguredEnsemble> = {},
): ConfiguredEnsemble {
  const named = (list: string) => list.split(' ').filter((name) => name !== '');
  const step: ConfiguredStep[] = steps.map((text, i) => {
    const [takes = '', makes = ''] = text.split('->').map((side) => side.trim());
    return {
      model_name: `m${i}`,
      model_version: -1,
      input_map: Object.fromEntries(named(takes).map((tensor, k) => [`I${k}`, tensor])),
      output_map: Object.fromEntries(named(makes).map((tensor, k) => [`O${k}`, tensor])),
    };
  });
  const tensors = (list: string) => named(list).map((name) => tensor(name));
  return {
    name: 'e',
    max_batch_size: 4,
    input: tensors(inputs),
    output: tensors(outputs),
    ensemble_scheduling: { step },
    ...fields,
  };
}

function tensor(name: string, fields: Partial<ConfiguredTensor> = {}): ConfiguredTensor {
  return { name, data_type: 'TYPE_FP32', dims: [16], ...fields };
}

/** Models that fit the steps. */
function membersOf({ ensemble_scheduling }: ConfiguredEnsemble): ConfiguredMember[] {
  return ensemble_scheduling!.step.map(({ model_name, input_map, output_map }) => ({
    name: model_name,
    max_batch_size: 8,
    input: Object.keys(input_map).map((name) => tensor(name)),
    output: Object.keys(output_map).map((name) => tensor(name)),
    model_transaction_policy: { decoupled: false },
  }));
}

/** The fault of an ensemble whose first model is changed. */
function faultOf(config: ConfiguredEnsemble, change: (members: ConfiguredMember[]) => void): string {
  const members = membersOf(config);
  change(members);
  try {
    planEnsemble(config, members);
  } catch (error) {
    return (error as Error).message;
  }
  return 'none';
}

describe('the graph of an ensemble', () => {
  it.each([
    [[], "must specify 'step' for ensemble 'e'"],
    [['-> B'], "must specify 'input_map' in step 0 of ensemble 'e'"],
    [['A -> B', 'A ->'], "must specify 'output_map' in step 1 of ensemble 'e'"],
    [
      ['A -> B', 'A -> B'],
      "ensemble tensor 'B' can appear in an output map only once for ensemble 'e' step 1",
    ],
    [
      ['A -> B', 'B -> A'],
      "ensemble input 'A' can appear in no output map, but does for ensemble 'e' step 1",
    ],
    [['X -> B'], "ensemble input 'A' for ensemble e' is not used"],
    [['A -> X'], "ensemble output 'B' for ensemble e' is not used"],
    [
      ['A X -> B'],
      "output 'B' for ensemble 'e' is not written: at least one of its depending tensors, 'X', is not connected",
    ],
    [
      ['A T -> B', 'U -> T'],
      "output 'B' for ensemble 'e' is not written: at least one of its depending tensors, 'U', is not connected",
    ],
    [
      ['A T -> B U', 'U -> T'],
      "output 'B' for ensemble 'e' is not written: at least one of its depending tensors, 'U', is not connected",
    ],
    [['A -> B T'], "ensemble tensor 'T' is unused in ensemble 'e'"],
    [['A -> B', 'X -> Y', 'Y -> X'], "ensemble tensor 'Y' is unused in ensemble 'e'"],
  ])('is refused in the words of Triton: %j', (steps, sentence) => {
    expect(graphProblem(ensemble('A', 'B', steps))?.sentence).toBe(sentence);
  });

  it('is refused where its configuration has no word of steps', () => {
    const { ensemble_scheduling: _, ...without } = ensemble('A', 'B', []);
    expect(graphProblem(without)?.sentence).toBe("must specify 'step' for ensemble 'e'");
  });

  it('says which step is meant', () => {
    expect(graphProblem(ensemble('A', 'B', ['A -> B', 'A ->']))?.step).toBe(1);
    expect(graphProblem(ensemble('A', 'B', ['A -> B T']))?.step).toBeNull();
    const unnamed = ensemble('A', 'B', ['A -> B']);
    const [step] = unnamed.ensemble_scheduling!.step;
    const config = { ...unnamed, ensemble_scheduling: { step: [{ ...step!, model_name: '' }] } };
    expect(graphProblem(config)).toEqual({
      sentence: "must specify 'model_name' in step 0 of ensemble 'e'",
      step: 0,
    });
  });

  it('may branch, meet, give an output that a step takes too, and give an input back', () => {
    for (const steps of [
      ['A -> B T', 'T -> C'],
      ['A -> T', 'T -> B', 'T -> C'],
      ['A -> B', 'B -> C'],
      ['A -> B C'],
    ])
      expect(graphProblem(ensemble('A', 'B C', steps))).toBeNull();
    expect(graphProblem(ensemble('A', 'A B', ['A -> B']))).toBeNull();
  });
});

describe('an ensemble and its members', () => {
  const config = ensemble('A', 'B', ['A -> T', 'T -> B']);

  it('become a plan', () => {
    const pinned = {
      ...config,
      ensemble_scheduling: {
        step: config.ensemble_scheduling!.step.map((step, i) => ({
          ...step,
          model_version: i === 0 ? 3 : -1,
        })),
      },
    };
    expect(planEnsemble(pinned, membersOf(pinned))).toEqual({
      tensors: ['A', 'T', 'B'],
      numInputs: 1,
      steps: [
        { model: 'm0', version: '3', inputs: [['I0', 0]], outputs: [['O0', 1]] },
        { model: 'm1', version: '', inputs: [['I0', 1]], outputs: [['O0', 2]] },
      ],
      outputs: [2],
      takers: [[0], [1], []],
      isDecoupled: false,
    });
  });

  const first = (fields: Partial<ConfiguredMember>) => (members: ConfiguredMember[]) => {
    members[0] = { ...members[0]!, ...fields };
  };

  it.each<[string, (members: ConfiguredMember[]) => void, string]>([
    [
      'a smaller batch',
      first({ max_batch_size: 2 }),
      'ensemble e allows maximum batch size 4, but it contains model m0 which only allows maximum batch size to be 2',
    ],
    [
      'an input that there is not',
      first({ input: [tensor('J')] }),
      'in ensemble e, ensemble tensor A is mapping to non-existing input I0 in model m0',
    ],
    [
      'an input that is not mapped',
      first({ input: [tensor('I0'), tensor('I1')] }),
      'in ensemble e, input I1 in model m0 is not mapped to any ensemble tensors',
    ],
    [
      'an output that there is not',
      first({ output: [tensor('P')] }),
      'in ensemble e, ensemble tensor T is mapped from non-existing output O0 in model m0',
    ],
    [
      'another type than the input of the ensemble',
      first({ input: [tensor('I0', { data_type: 'TYPE_INT32' })] }),
      'in ensemble e, ensemble tensor A: inconsistent data type: TYPE_FP32 is inferred from model e while TYPE_INT32 is inferred from model m0',
    ],
    [
      'another shape than what takes it',
      first({ output: [tensor('O0', { dims: [8] })] }),
      'in ensemble e, ensemble tensor T: inconsistent shape: [-1,8] is inferred from model m0 while [-1,16] is inferred from model m1',
    ],
    [
      'another rank without batches',
      first({ max_batch_size: 0, output: [tensor('O0', { dims: [2, 3, 16] })] }),
      'in ensemble e, ensemble tensor T: inconsistent shape: [2,3,16] is inferred from model m0 while [-1,16] is inferred from model m1',
    ],
  ])('are refused in the words of Triton: %s', (_, change, message) => {
    expect(faultOf(config, change)).toBe(message);
  });

  it.each<[string, (members: ConfiguredMember[]) => void]>([
    ['sizes that are free', first({ output: [tensor('O0', { dims: [-1] })] })],
    [
      'an optional input that is not mapped',
      first({ input: [tensor('I0'), tensor('X', { optional: true })] }),
    ],
    ['outputs that are not mapped', first({ output: [tensor('O0'), tensor('O1')] })],
    ['a model without batches, of one row', first({ max_batch_size: 0 })],
    [
      'a model without batches whose first size is the batch',
      first({ max_batch_size: 0, output: [tensor('O0', { dims: [-1, 16] })] }),
    ],
  ])('may have %s', (_, change) => {
    expect(faultOf(config, change)).toBe('none');
  });

  it('compares what a reshape of the ensemble makes of its inputs', () => {
    const shaped = { ...config, input: [tensor('A', { dims: [4, 4], reshape: { shape: [16] } })] };
    expect(faultOf(shaped, () => {})).toBe('none');
    expect(faultOf({ ...config, input: [tensor('A', { dims: [4, 4] })] }, () => {})).toContain(
      'inconsistent shape',
    );
  });
});

describe('an ensemble with members that answer any number of times', () => {
  const decoupled =
    (...which: number[]) =>
    (members: ConfiguredMember[]) => {
      for (const i of which) members[i] = { ...members[i]!, model_transaction_policy: { decoupled: true } };
    };
  const isDecoupled = (config: ConfiguredEnsemble, ...which: number[]) => {
    const members = membersOf(config);
    decoupled(...which)(members);
    return planEnsemble(config, members).isDecoupled;
  };

  it('answers so itself', () => {
    const chain = ensemble('A', 'B', ['A -> T', 'T -> B']);
    expect([
      isDecoupled(chain),
      isDecoupled(chain, 0),
      isDecoupled(chain, 1),
      isDecoupled(chain, 0, 1),
    ]).toEqual([false, true, true, true]);
    const fork = ensemble('A', 'B', ['A -> T', 'T -> U', 'T -> V', 'U V -> B']);
    expect(isDecoupled(fork, 0)).toBe(true);
  });

  it.each([
    ['with an input of the ensemble', ensemble('A', 'B', ['A -> T', 'T A -> B']), [0], 'm1'],
    ['of two of them', ensemble('A', 'B', ['A -> T', 'A -> U', 'T U -> B']), [0, 1], 'm2'],
    ['of one of two branches', ensemble('A', 'B', ['A -> T', 'T -> U', 'T -> V', 'U V -> B']), [1], 'm3'],
    ['as outputs of the ensemble', ensemble('A', 'B C', ['A -> B', 'A -> C']), [0], 'e'],
  ])('cannot put tensors together that come differently often: %s', (_, config, which, model) => {
    expect(faultOf(config, decoupled(...which))).toBe(
      `in ensemble e, step of model '${model}' receives inputs originated from different decoupled models`,
    );
  });
});

describe('what a request wants', () => {
  // The graph of Triton's document: a picture to its class and to its parts.
  const document = ensemble('IMAGE', 'CLASSIFICATION SEGMENTATION', [
    'IMAGE -> preprocessed_image',
    'preprocessed_image -> CLASSIFICATION',
    'preprocessed_image -> SEGMENTATION',
  ]);
  const plan = planEnsemble(document, membersOf(document));

  it.each<[string[] | null, boolean[], number[]]>([
    [null, [true, true, true], [1, 2, 1, 1]],
    [['SEGMENTATION'], [true, false, true], [1, 1, 0, 1]],
    [['CLASSIFICATION'], [true, true, false], [1, 1, 1, 0]],
  ])('decides what runs: %j', (requested, steps, uses) => {
    expect(wantedParts(plan, requested)).toMatchObject({ steps, uses });
  });

  it('begins both branches as soon as what they take is there, and answers when both are done', () => {
    const state = new EnsembleState(plan, wantedParts(plan, null));
    state.arrive(0);
    expect(state.ready()).toEqual([{ step: 0, iteration: 0 }]);
    expect(state.ready()).toEqual([]);
    state.arrive(1);
    expect(state.ready()).toEqual([
      { step: 1, iteration: 0 },
      { step: 2, iteration: 0 },
    ]);
    state.arrive(3);
    expect(state.answers()).toEqual([]);
    state.arrive(2);
    expect([state.answers(), state.answers(), state.numAnswers]).toEqual([[0], [], 1]);
  });

  it('tells what came without the others that it is taken with', () => {
    const state = new EnsembleState(plan, wantedParts(plan, null));
    for (const tensor of [0, 1, 2, 2, 3]) state.arrive(tensor);
    expect(state.unmet()).toEqual({ more: 'CLASSIFICATION', count: 2, less: 'SEGMENTATION', lessCount: 1 });
  });
});
