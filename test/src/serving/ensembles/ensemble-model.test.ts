import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import { inferTerms } from '../../../../src/server/inferring/infer-terms.js';
import { protocolError } from '../../../../src/server/kserve/errors.js';
import type { Caller } from '../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { RequestMemory } from '../../../../src/server/web/memory/request-memory.js';
import type { InferModel } from '../../../../src/serving/infer-model.js';
import { asked, configOf, ensembleOf, ManualMember, tensorOf } from './support/manual-member.js';

const DECOUPLED = { model_transaction_policy: { decoupled: true } };

/** The ensemble of Triton's document: a picture to its class and to its parts. */
function document() {
  const preprocess = new ManualMember(configOf('image_preprocess_model', 'RAW_IMAGE -> PREPROCESSED_OUTPUT'));
  const classify = new ManualMember(
    configOf('classification_model', 'FORMATTED_IMAGE -> CLASSIFICATION_OUTPUT'),
  );
  const segment = new ManualMember(configOf('segmentation_model', 'FORMATTED_IMAGE -> SEGMENTATION_OUTPUT'));
  const members = new Map<string, InferModel>(
    [preprocess, classify, segment].map((member) => [member.config.name, member]),
  );
  const model = ensembleOf(members, 'IMAGE -> CLASSIFICATION SEGMENTATION', [
    'image_preprocess_model RAW_IMAGE=IMAGE -> PREPROCESSED_OUTPUT=preprocessed_image',
    'classification_model FORMATTED_IMAGE=preprocessed_image -> CLASSIFICATION_OUTPUT=CLASSIFICATION',
    'segmentation_model FORMATTED_IMAGE=preprocessed_image -> SEGMENTATION_OUTPUT=SEGMENTATION',
  ]);
  return { model, members, preprocess, classify, segment };
}

/** One member after the other: `first` gives T, `last` makes B of it. */
function chain({
  first = {},
  last = {},
  ...fields
}: {
  first?: object;
  last?: object;
  maxInflight?: number;
} = {}) {
  const members = new Map<string, ManualMember>();
  members.set('first', new ManualMember(configOf('first', 'X -> Y', first)));
  members.set('last', new ManualMember(configOf('last', 'X -> Y', last)));
  const model = ensembleOf(members, 'A -> B', ['first X=A -> Y=T', 'last X=T -> Y=B'], fields);
  return { model, members, first: members.get('first')!, last: members.get('last')! };
}

describe('a request of an ensemble', () => {
  it('goes through its models as their inputs come, both branches beside each other', () => {
    const { model, preprocess, classify, segment } = document();
    const outcome = asked(model, [tensorOf('IMAGE', 1)]);
    expect(preprocess.asked.map(({ inputs }) => inputs)).toEqual([{ RAW_IMAGE: [1] }]);
    expect([classify.asked.length, segment.asked.length]).toEqual([0, 0]);
    preprocess.answer(0, 2);
    expect([classify.asked[0]?.inputs, segment.asked[0]?.inputs]).toEqual([
      { FORMATTED_IMAGE: [2] },
      { FORMATTED_IMAGE: [2] },
    ]);
    segment.answer(0, 4);
    expect(outcome).toEqual({ responses: [], end: undefined });
    classify.answer(0, 3);
    expect(outcome).toMatchObject({
      responses: [{ outputs: { CLASSIFICATION: [3], SEGMENTATION: [4] } }],
      end: 'ended',
    });
  });

  it('runs only what the outputs need that it asks for, and asks members for nothing else', () => {
    const { model, preprocess, classify, segment } = document();
    const outcome = asked(model, [tensorOf('IMAGE', 1)], { outputs: ['SEGMENTATION'] });
    preprocess.answer(0, 2);
    expect([classify.asked.length, segment.asked.length]).toEqual([0, 1]);
    segment.answer(0, 4);
    expect(outcome.responses.map(({ outputs }) => outputs)).toEqual([{ SEGMENTATION: [4] }]);
    const two = new ManualMember(configOf('two', 'X -> Y Z'));
    const members = new Map<string, InferModel>([['two', two]]);
    const wide = ensembleOf(members, 'A -> B C', ['two X=A -> Y=B Z=C']);
    asked(wide, [tensorOf('A', 1)], { outputs: ['C'] });
    asked(wide, [tensorOf('A', 1)]);
    expect(two.asked.map(({ request }) => request.outputs)).toEqual([['Z'], ['Y', 'Z']]);
  });

  it('hands tensors on without copying them, and its metadata to all members', () => {
    const { model, first, last } = chain();
    const image = tensorOf('A', 7);
    const sequence = { id: 42n, start: true, end: false };
    const terms = { caller: 'me', keep: () => {}, letGo: () => {} } as never;
    asked(model, [image], {
      id: 'r',
      parameters: { p: 1 },
      sequence,
      priority: 2,
      timeoutUs: 30,
      caller: 5,
      terms,
    });
    const passed = { id: 'r', parameters: { p: 1 }, sequence, priority: 2, timeoutUs: 30, caller: 5, terms };
    expect(first.asked[0]!.request).toMatchObject(passed);
    expect(first.asked[0]!.request.inputs[0]!.data).toBe(image.data);
    const between = tensorOf('Y', 8);
    first.asked[0]!.respond([between]);
    expect(last.asked[0]!.request).toMatchObject(passed);
    expect(last.asked[0]!.request.inputs[0]!.data).toBe(between.data);
  });

  it('leaves out what was left out, for members whose inputs are optional', () => {
    const member = new ManualMember(configOf('m', 'X Y? -> P Q'));
    const next = new ManualMember(configOf('n', 'X? Y? -> R'));
    const members = new Map<string, InferModel>([
      ['m', member],
      ['n', next],
    ]);
    const model = ensembleOf(members, 'A B? -> C D', ['m X=A Y=B -> P=C Q=T', 'n X=T Y=B -> R=D']);
    const outcome = asked(model, [tensorOf('A', 1)]);
    expect(member.asked[0]!.inputs).toEqual({ X: [1] });
    // Q is not called: nothing comes of it, and n goes without it.
    member.asked[0]!.respond([tensorOf('P', 2)]);
    expect(next.asked[0]!.inputs).toEqual({});
    member.asked[0]!.end();
    next.answer(0, 3);
    expect(outcome).toMatchObject({ responses: [{ outputs: { C: [2], D: [3] } }], end: 'ended' });
    expect(() => asked(model, [tensorOf('B', 1)])).toThrow(/missing required input\(s\) \['A'\]/);
  });

  it('may give an input back, and take an output as an input', async () => {
    const member = new ManualMember(configOf('m', 'X -> Y'));
    const members = new Map<string, InferModel>([['m', member]]);
    const model = ensembleOf(members, 'A -> A B C', ['m X=A -> Y=B', 'm X=B -> Y=C']);
    const alone = asked(model, [tensorOf('A', 1)], { outputs: ['A'] });
    expect(alone).toEqual({ responses: [], end: undefined }); // an answer comes later
    await nextTurn();
    expect(alone).toMatchObject({
      responses: [{ outputs: { A: [1] }, parameters: undefined }],
      end: 'ended',
    });
    const all = asked(model, [tensorOf('A', 1)]);
    member.answer(0, 2);
    member.answer(1, 3);
    expect(all).toMatchObject({ responses: [{ outputs: { A: [1], B: [2], C: [3] } }], end: 'ended' });
  });

  it('changes shapes between models with and without batches', () => {
    const batched = new ManualMember(configOf('batched', 'X -> Y', { max_batch_size: 4 }));
    const plain = new ManualMember(configOf('plain', 'X -> Y'));
    const members = new Map<string, InferModel>([
      ['batched', batched],
      ['plain', plain],
    ]);
    const model = ensembleOf(members, 'A -> B', ['batched X=A -> Y=T', 'plain X=T -> Y=B'], {
      max_batch_size: 4,
    });
    const shapes: (readonly number[])[] = [];
    const input = { ...tensorOf('A', 1), shape: [1, 1] };
    const request = {
      id: '',
      inputs: [input],
      outputs: null,
      parameters: {},
      sequence: null,
      priority: 0,
      timeoutUs: 0,
    };
    model.infer(request, {
      response: ({ outputs }) => void shapes.push(outputs[0]!.shape),
      end: () => {},
      fail: () => {},
    });
    expect(batched.asked[0]!.request.inputs[0]!.shape).toEqual([1, 1]);
    batched.asked[0]!.respond([{ ...tensorOf('Y', 2), shape: [1, 1] }]);
    expect(plain.asked[0]!.request.inputs[0]!.shape).toEqual([1]);
    plain.asked[0]!.respond([tensorOf('Y', 3)]);
    expect(shapes).toEqual([[1, 1]]);
  });
});

describe('a member that answers several times', () => {
  it('lets its answers flow through, in order whatever is done first', () => {
    const { model, first, last } = chain({ first: DECOUPLED });
    expect(model.config.model_transaction_policy).toEqual({ decoupled: true });
    const outcome = asked(model, [tensorOf('A', 1)]);
    for (const value of [10, 20, 30]) first.asked[0]!.respond([tensorOf('Y', value)]);
    expect(last.asked.map(({ inputs }) => inputs.X)).toEqual([[10], [20], [30]]);
    last.answer(2, 33);
    last.answer(1, 22);
    expect(outcome.responses).toEqual([]);
    last.answer(0, 11);
    first.asked[0]!.respond([tensorOf('Y', 40)]);
    first.asked[0]!.end();
    expect(outcome.end).toBeUndefined();
    last.answer(3, 44);
    expect(outcome.responses.map(({ outputs }) => outputs.B)).toEqual([[11], [22], [33], [44]]);
    expect(outcome.end).toBe('ended');
  });

  it('may answer nothing, and then so does the ensemble', () => {
    const { model, first } = chain({ first: DECOUPLED });
    const outcome = asked(model, [tensorOf('A', 1)]);
    first.asked[0]!.end();
    expect(outcome).toEqual({ responses: [], end: 'ended' });
  });

  it('may be the last one, and behind another such one', () => {
    const { model, first, last } = chain({ first: DECOUPLED, last: DECOUPLED });
    const outcome = asked(model, [tensorOf('A', 1)]);
    first.asked[0]!.respond([tensorOf('Y', 1)]);
    first.asked[0]!.respond([tensorOf('Y', 2)]);
    last.asked[1]!.respond([tensorOf('Y', 21)]);
    last.asked[0]!.respond([tensorOf('Y', 11)]);
    last.asked[1]!.respond([tensorOf('Y', 22)]);
    last.asked[0]!.respond([tensorOf('Y', 12)]);
    last.asked[1]!.end();
    first.asked[0]!.end();
    last.asked[0]!.end();
    expect(outcome.responses.map(({ outputs }) => outputs.B)).toEqual([[11], [12], [21], [22]]);
    expect(outcome.end).toBe('ended');
  });

  it('cannot make more answers wait than one request may have', () => {
    const { model, first, last } = chain({ first: DECOUPLED });
    const outcome = asked(model, [tensorOf('A', 1)]);
    for (let i = 0; i < 10_002 && outcome.end === undefined; i++) first.asked[0]!.respond([tensorOf('Y', i)]);
    expect(outcome.end).toMatchObject({
      message: expect.stringMatching(/^in ensemble 'e', its members gave more than 10,000 answers or 64 MiB/),
    });
    expect(last.asked.every(({ request }) => request.signal!.aborted)).toBe(true);
  });

  it('is told of where tensors that belong together come differently often', () => {
    const several = new ManualMember(configOf('several', 'X -> Y')); // not said to be decoupled
    const once = new ManualMember(configOf('once', 'X -> Y'));
    const members = new Map<string, InferModel>([
      ['several', several],
      ['once', once],
    ]);
    const model = ensembleOf(members, 'A -> B C', ['several X=A -> Y=B', 'once X=A -> Y=C']);
    const outcome = asked(model, [tensorOf('A', 1)]);
    several.asked[0]!.respond([tensorOf('Y', 1)]);
    several.answer(0, 2);
    once.answer(0, 3);
    expect(outcome).toMatchObject({
      responses: [{ outputs: { B: [1], C: [3] } }],
      end: {
        message: "in ensemble 'e', tensor 'B' came 2 times and tensor 'C', which is taken with it, 1 times",
        kind: 'internal',
      },
    });
  });
});

describe('a member that fails', () => {
  it('fails the request alone, is named, and its neighbours are cancelled', () => {
    const { model, preprocess, classify, segment } = document();
    const [outcome, other] = [asked(model, [tensorOf('IMAGE', 1)]), asked(model, [tensorOf('IMAGE', 9)])];
    preprocess.answer(0, 2);
    preprocess.answer(1, 8);
    classify.asked[0]!.fail(new InferError('no luck', 'internal'));
    expect(outcome.end).toMatchObject({
      message: "in ensemble 'e', model 'classification_model': no luck",
      kind: 'internal',
    });
    expect(segment.asked[0]!.request.signal!.aborted).toBe(true);
    segment.answer(0, 4); // too late
    classify.answer(1, 7);
    segment.answer(1, 6);
    expect(other).toMatchObject({ responses: [{ outputs: { CLASSIFICATION: [7] } }], end: 'ended' });
    expect(model.failures()).toEqual({ REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 1 });
    expect(model.activity()).toMatchObject({ running: 0, waiting: 0 });
  });

  it.each(['invalid', 'unavailable', 'internal', 'unsupported'] as const)(
    'keeps the kind of its error: %s',
    (kind) => {
      const { model, first } = chain();
      const outcome = asked(model, [tensorOf('A', 1)]);
      first.asked[0]!.fail(new InferError("the model 'first' says no", kind));
      expect(outcome.end).toMatchObject({ message: "in ensemble 'e', the model 'first' says no", kind });
    },
  );

  it('fails at once what it refuses at once, and what began beside it', () => {
    const { model, members, preprocess, classify, segment } = document();
    segment.refusal = new InferError('Exceeds maximum queue size', 'unavailable');
    const outcome = asked(model, [tensorOf('IMAGE', 1)]);
    preprocess.answer(0, 2);
    expect(outcome.end).toMatchObject({
      message: "in ensemble 'e', model 'segmentation_model': Exceeds maximum queue size",
      kind: 'unavailable',
    });
    expect(classify.asked[0]!.request.signal!.aborted).toBe(true);
    preprocess.refusal = new InferError('not now', 'unavailable');
    expect(() => asked(model, [tensorOf('IMAGE', 1)])).toThrow(
      "in ensemble 'e', model 'image_preprocess_model': not now",
    );
    members.delete('image_preprocess_model');
    expect(() => asked(model, [tensorOf('IMAGE', 1)])).toThrow(
      "in ensemble 'e', Request for unknown model: 'image_preprocess_model' has no available versions",
    );
    expect([model.failures().OTHER, model.activity().running]).toEqual([3, 0]);
  });

  it('may be gone or another one when it is its turn', () => {
    const { model, members, first } = chain();
    const [gone, replaced] = [asked(model, [tensorOf('A', 1)]), asked(model, [tensorOf('A', 2)])];
    members.delete('last');
    first.answer(0, 1);
    expect(gone.end).toMatchObject({ kind: 'notFound', message: expect.stringContaining("'last'") });
    const another = new ManualMember(configOf('last', 'X -> Y'));
    members.set('last', another);
    first.answer(1, 2);
    another.answer(0, 3);
    expect(replaced).toMatchObject({ responses: [{ outputs: { B: [3] } }], end: 'ended' });
  });

  it('is told of where it ends without an answer, or without an output that is needed', () => {
    const { model, first, last } = chain();
    const [silent, partial] = [
      asked(model, [tensorOf('A', 1)], { id: 'q' }),
      asked(model, [tensorOf('A', 1)]),
    ];
    first.asked[0]!.end();
    expect(silent.end).toMatchObject({
      message: "in ensemble 'e', the model 'first' ended the request without an answer",
    });
    first.asked[1]!.respond([]);
    expect(last.asked[0]!.inputs).toEqual({}); // the member itself says what it lacks
    last.asked[0]!.respond([]);
    last.asked[0]!.end();
    first.asked[1]!.end();
    expect(partial).toMatchObject({ responses: [{ outputs: {} }], end: 'ended' });
  });
});

describe('a client that leaves', () => {
  it('cancels whatever member has its request, and is counted so', () => {
    const { model, preprocess, classify, segment } = document();
    const leaving = new AbortController();
    const outcome = asked(model, [tensorOf('IMAGE', 1)], { signal: leaving.signal });
    preprocess.answer(0, 2);
    leaving.abort();
    for (const member of [classify, segment]) expect(member.asked[0]!.request.signal!.aborted).toBe(true);
    expect(outcome.end).toMatchObject({ kind: 'unavailable' });
    classify.asked[0]!.fail(new InferError('aborted', 'unavailable'));
    expect(model.failures()).toEqual({ REJECTED: 0, CANCELED: 1, BACKEND: 0, OTHER: 0 });
    expect(model.activity().running).toBe(0);
    expect(() => asked(model, [tensorOf('IMAGE', 1)], { signal: leaving.signal })).toThrow(/aborted/);
    expect(preprocess.asked.length).toBe(1);
  });
});

describe('max_inflight_requests', () => {
  it('bounds what a step has at its model at once, in the order of the requests', () => {
    const { model, first, last } = chain({ maxInflight: 2 });
    const outcomes = [1, 2, 3, 4].map((value) => asked(model, [tensorOf('A', value)]));
    expect(first.asked.length).toBe(2);
    first.answer(1, 20);
    first.answer(0, 10);
    expect(first.asked.map(({ inputs }) => inputs.X)).toEqual([[1], [2], [3], [4]]);
    expect(last.asked.map(({ inputs }) => inputs.X)).toEqual([[20], [10]]);
    first.answer(2, 30);
    first.answer(3, 40);
    expect(last.asked.length).toBe(2);
    for (const [i, value] of [22, 11, 33, 44].entries()) last.answer(i, value);
    expect(outcomes.map(({ responses: [one] }) => one?.outputs.B)).toEqual([[11], [22], [33], [44]]);
  });

  it('gives the place of one that fails or leaves to the next', () => {
    const { model, first } = chain({ maxInflight: 1 });
    const leaving = new AbortController();
    const outcomes = [
      asked(model, [tensorOf('A', 1)]),
      asked(model, [tensorOf('A', 2)], { signal: leaving.signal }),
      asked(model, [tensorOf('A', 3)]),
    ];
    leaving.abort();
    expect(outcomes[1]!.end).toMatchObject({ kind: 'unavailable' });
    first.asked[0]!.fail(new InferError('no', 'internal'));
    expect(first.asked.map(({ inputs }) => inputs.X)).toEqual([[1], [3]]);
  });

  it('holds out where thousands that wait are refused at once', () => {
    const { model, first } = chain({ maxInflight: 1 });
    const outcomes = Array.from({ length: 5_000 }, (_, i) => asked(model, [tensorOf('A', i)]));
    first.refusal = new InferError('gone', 'unavailable');
    first.asked[0]!.fail(new InferError('gone', 'unavailable'));
    expect(outcomes.every(({ end }) => end !== undefined && end !== 'ended')).toBe(true);
    expect(model.activity().running).toBe(0);
  });
});

describe('an ensemble within an ensemble', () => {
  it('is a member like others, and its steps are the same for all requests of one of its client', () => {
    const leaf = new ManualMember(configOf('leaf', 'X -> Y'));
    const source = new ManualMember(configOf('source', 'X -> Y', DECOUPLED));
    const members = new Map<string, InferModel>([
      ['leaf', leaf],
      ['source', source],
    ]);
    members.set('inner', ensembleOf(members, 'X -> Y', ['leaf X=X -> Y=Y'], { name: 'inner' }));
    const outer = ensembleOf(members, 'A -> B', ['source X=A -> Y=T', 'inner X=T -> Y=B'], { name: 'outer' });
    const [one, other] = [asked(outer, [tensorOf('A', 1)]), asked(outer, [tensorOf('A', 2)])];
    for (const { respond } of source.asked) for (const value of [1, 2]) respond([tensorOf('Y', value)]);
    const origins = leaf.asked.map(({ request }) => request.origin);
    expect(origins[0]).toEqual({ depth: 2 });
    expect([origins[1] === origins[0], origins[2] === origins[0], origins[3] === origins[2]]).toEqual([
      true,
      false,
      true,
    ]);
    leaf.asked[0]!.fail(new InferError('no luck', 'internal'));
    expect(one.end).toMatchObject({
      message: "in ensemble 'outer', in ensemble 'inner', model 'leaf': no luck",
    });
    leaf.answer(2, 5);
    leaf.answer(3, 6);
    source.asked[1]!.end();
    expect(other.responses.map(({ outputs }) => outputs.B)).toEqual([[5], [6]]);
    expect(other.end).toBe('ended');
  });

  it('is refused beyond a depth that nobody needs', () => {
    const members = new Map<string, InferModel>([['e0', new ManualMember(configOf('e0', 'X -> Y'))]]);
    for (let i = 1; i <= 9; i++)
      members.set(`e${i}`, ensembleOf(members, 'X -> Y', [`e${i - 1} X=X -> Y=Y`], { name: `e${i}` }));
    asked(members.get('e8')!, [tensorOf('X', 1)]);
    expect(() => asked(members.get('e9')!, [tensorOf('X', 1)])).toThrow(
      /in ensemble 'e1', it lies in 8 ensembles/,
    );
  });
});

describe('sequences', () => {
  it('are told with the answer, and a member may put its tensors into another one', () => {
    const { model, first, last } = chain();
    const sequence = { id: 'chat', start: false, end: true };
    const outcome = asked(model, [tensorOf('A', 1)], { sequence });
    first.asked[0]!.respond([tensorOf('Y', 2)], { sequence_id: 7, sequence_start: true, other: 'x' });
    expect(last.asked[0]!.request.sequence).toEqual({ id: 7n, start: true, end: false });
    last.answer(0, 3);
    expect(outcome.responses[0]!.parameters).toEqual({
      sequence_id: 7n,
      sequence_start: true,
      sequence_end: false,
    });
    const none = asked(model, [tensorOf('A', 1)]);
    first.answer(1, 2);
    expect(last.asked[1]!.request.sequence).toBeNull();
    last.answer(1, 3);
    expect(none.responses[0]!.parameters).toEqual({
      sequence_id: 0n,
      sequence_start: false,
      sequence_end: false,
    });
  });

  it.each([
    [{ sequence_id: 1.5 }, 'sequence_id'],
    [{ sequence_start: 1 }, 'sequence_start'],
    [{ sequence_end: 'x' }, 'sequence_end'],
  ])('are not understood in other forms: %j', (parameters, named) => {
    const { model, first } = chain();
    const outcome = asked(model, [tensorOf('A', 1)]);
    first.asked[0]!.respond([tensorOf('Y', 2)], parameters);
    expect(outcome.end).toMatchObject({ message: expect.stringContaining(`expected parameter '${named}'`) });
  });
});

describe('the memory of a response', () => {
  it('goes back when no step needs it any more, and neither does the client', () => {
    const wide = new ManualMember(configOf('wide', 'X -> Y Z'));
    const { members, first } = chain();
    const all = new Map<string, InferModel>([...members, ['wide', wide]]);
    const model = ensembleOf(all, 'A -> B C', ['wide X=A -> Y=T Z=B', 'first X=T -> Y=C']);
    const release = vi.fn();
    const outcome = asked(model, [tensorOf('A', 1)]);
    wide.asked[0]!.respond([tensorOf('Y', 2), tensorOf('Z', 3)], undefined, release);
    wide.asked[0]!.end();
    first.asked[0]!.respond([tensorOf('Y', 4)]);
    expect(outcome.responses.length).toBe(1);
    outcome.responses[0]!.release!();
    outcome.responses[0]!.release!();
    expect(release).not.toHaveBeenCalled(); // first may still read its input
    first.asked[0]!.end();
    expect(release).toHaveBeenCalledTimes(1);
    expect(outcome.end).toBe('ended');
  });

  it('goes back at once where nobody asked for what it holds', () => {
    const { model, first, last } = chain({ first: DECOUPLED });
    const release = vi.fn();
    asked(model, [tensorOf('A', 1)]);
    first.asked[0]!.respond([], undefined, release);
    expect(release).toHaveBeenCalledTimes(1);
    expect(last.asked.length).toBe(1);
  });
});

describe('the memory that a request accounts for', () => {
  /** Tensors of 4000 bytes. */
  const long = (name: string) => tensorOf(name, ...Array.from({ length: 1000 }, (_, i) => i));

  function accounted(limit: number) {
    const ledger = new MemoryLedger({ limit });
    const memory = new RequestMemory(ledger.open('request'), ledger.limit);
    const caller = { name: '', weight: 1 } as Caller;
    return { ledger, memory, terms: inferTerms({ caller, requestId: 'r', timeLimitMs: null, memory }) };
  }

  it('is what steps gave, until the last that reads it is done', () => {
    const { ledger, terms } = accounted(100_000);
    const { model, first, last } = chain();
    const outcome = asked(model, [tensorOf('A', 1)], { terms });
    expect(ledger.held).toBe(0);
    first.asked[0]!.respond([long('Y')]);
    expect(ledger.held).toBe(4000);
    first.asked[0]!.end();
    last.asked[0]!.respond([tensorOf('Y', 5)]);
    expect(outcome.responses.length).toBe(1);
    expect(ledger.held).toBe(4000); // last may still read its input
    last.asked[0]!.end();
    expect([ledger.held, outcome.end]).toEqual([0, 'ended']);
  });

  it('has an end, at which the request alone fails and gives all of it back', () => {
    const { ledger, memory, terms } = accounted(7000);
    const { model, first, last } = chain();
    const other = asked(model, [tensorOf('A', 1)]);
    const outcome = asked(model, [tensorOf('A', 1)], { terms });
    first.asked[1]!.respond([long('Y')]);
    first.asked[1]!.end();
    last.asked[0]!.respond([long('Y')]);
    const never =
      /^in ensemble 'e', This request may take 8000 bytes of memory, but all requests together have 7000 \(--max-held-memory-bytes\)\.$/;
    expect(outcome).toMatchObject({ responses: [], end: { kind: 'unavailable' } });
    expect((outcome.end as InferError).message).toMatch(never);
    expect(protocolError(outcome.end).status).toBe(503);
    expect([ledger.held, last.asked[0]!.request.signal!.aborted]).toEqual([0, true]);
    last.asked[0]!.respond([long('Y')]);
    last.asked[0]!.end();
    expect(ledger.held).toBe(0);
    first.answer(0, 2);
    last.answer(1, 3);
    expect(other).toMatchObject({ responses: [{ outputs: { B: [3] } }], end: 'ended' });

    memory.release();
    const beside = new RequestMemory(ledger.open('request'), ledger.limit);
    beside.holdBody(6000);
    const mine = new RequestMemory(ledger.open('request'), ledger.limit);
    const late = asked(model, [tensorOf('A', 1)], {
      terms: inferTerms({ caller: { name: '' } as Caller, requestId: 'r', timeLimitMs: null, memory: mine }),
    });
    first.asked[2]!.respond([long('Y')]);
    expect(late.end).toMatchObject({ message: expect.stringContaining('try again later') });
    expect(ledger.held).toBe(6000);
  });

  it('goes back when the request is cancelled, and counts answers whose turn has not come', () => {
    const { ledger, terms } = accounted(100_000);
    const { model, first, last } = chain({ first: DECOUPLED });
    const leaving = new AbortController();
    const outcome = asked(model, [tensorOf('A', 1)], { terms, signal: leaving.signal });
    first.asked[0]!.respond([tensorOf('Y', 1)]);
    first.asked[0]!.respond([tensorOf('Y', 2)]);
    expect(ledger.held).toBe(8);
    last.asked[1]!.respond([long('Y')]);
    expect([ledger.held, outcome.responses.length]).toEqual([4008, 0]);
    leaving.abort(new DOMException('gone', 'AbortError'));
    expect(ledger.held).toBe(0);
    last.asked[0]!.respond([long('Y')]);
    last.asked[1]!.end();
    expect(ledger.held).toBe(0);
  });

  it('is counted once where ensembles lie within each other', () => {
    const { ledger, terms } = accounted(5000);
    const { model: inner, first, last } = chain();
    const outer = ensembleOf(new Map([['inner', inner]]), 'A -> B', ['inner A=A -> B=B']);
    const outcome = asked(outer, [tensorOf('A', 1)], { terms });
    first.answer(0, 1);
    last.asked[0]!.respond([long('Y')]);
    last.asked[0]!.end();
    expect([ledger.held, outcome.end]).toEqual([0, 'ended']);
  });
});

describe('the numbers of an ensemble', () => {
  it('count as Triton does: itself once, and the times of its members together', () => {
    const { model, preprocess, classify, segment } = document();
    asked(model, [tensorOf('IMAGE', 1)]);
    preprocess.answer(0, 2);
    classify.answer(0, 3);
    expect(model.statistics().inference_count).toBe(0);
    expect(model.activity()).toMatchObject({ running: 1, waiting: 0, instances: [] });
    segment.answer(0, 4);
    const { inference_count, execution_count, inference_stats, batch_stats } = model.statistics();
    expect([inference_count, execution_count]).toEqual([1, 1]);
    expect(inference_stats).toMatchObject({
      success: { count: 1 },
      fail: { count: 0 },
      queue: { count: 1, ns: 0 },
      compute_input: { count: 1, ns: 3 },
      compute_infer: { count: 1, ns: 30 },
      compute_output: { count: 1, ns: 300 },
    });
    expect(inference_stats.success.ns).toBeGreaterThan(0);
    expect(batch_stats).toEqual([
      {
        batch_size: 1,
        compute_input: { count: 1, ns: 3 },
        compute_infer: { count: 1, ns: 30 },
        compute_output: { count: 1, ns: 300 },
      },
    ]);
  });

  it('include the time to a first response of those that give several', () => {
    const { model, first, last } = chain({ first: DECOUPLED });
    asked(model, [tensorOf('A', 1)]);
    first.asked[0]!.respond([tensorOf('Y', 1)]);
    last.answer(0, 1);
    expect(model.firstResponses!().counts.reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(document().model.firstResponses).toBeUndefined();
  });
});

describe('an ensemble that is closed', () => {
  it('answers what it has and takes no more', async () => {
    const { model, first, last } = chain();
    const outcome = asked(model, [tensorOf('A', 1)]);
    const closed = Promise.all([model.close(), model.close()]);
    expect(() => asked(model, [tensorOf('A', 1)])).toThrow(/is unloaded/);
    first.answer(0, 1);
    last.answer(0, 2);
    await closed;
    expect(outcome.end).toBe('ended');
    await model.close();
  });

  it('cancels what it has at once or after a time', async () => {
    for (const how of [{ abort: true }, { timeoutMs: 1 }]) {
      const { model, first } = chain();
      const outcome = asked(model, [tensorOf('A', 1)]);
      await model.close(how);
      expect(outcome.end).toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining('unloaded'),
      });
      expect(first.asked[0]!.request.signal!.aborted).toBe(true);
    }
  });
});
