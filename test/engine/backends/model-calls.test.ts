import { beforeEach, describe, expect, it } from 'vitest';
import type { InstanceMessage, ModelCall } from '../../../callbacks/infer/instance-messages.js';
import { MAX_CALL_BYTES, MAX_CALLS, ModelCalls } from '../../../engine/backends/model-calls.js';

const CALL: ModelCall = {
  model: 'other',
  version: '',
  inputs: [],
  outputs: null,
  parameters: {},
  sequence: null,
  decoupled: false,
};
const input = (bytes: number, name = 'X') =>
  ({ name, datatype: 'UINT8', shape: [bytes], data: new Uint8Array(bytes) }) as const;

let posted: InstanceMessage[];
let held: number;
let calls: ModelCalls;
beforeEach(() => {
  posted = [];
  held = 0;
  calls = new ModelCalls((message) => posted.push(message), { hold: () => held++, release: () => held-- });
});
const settle = (call: number, error: string | null = null) =>
  calls.settle({ type: 'called', call, responses: error === null ? [] : null, error });

describe('calls of other models', () => {
  it('resolve or reject with what the host says, each once', async () => {
    const [one, other] = [calls.ask(CALL), calls.ask(CALL)];
    await Promise.resolve();
    expect([posted.length, held]).toEqual([2, 2]);
    settle(1, 'no luck');
    settle(0);
    settle(0);
    settle(7);
    expect(await one).toEqual([]);
    await expect(other).rejects.toThrow('no luck');
    expect(held).toBe(0);
  });

  it('take along the bytes of their inputs and no others of the same memory', async () => {
    const memory = new Uint8Array(1000).fill(7);
    const asked = calls.ask({ ...CALL, inputs: [{ ...input(4), data: memory.subarray(8, 12) }] });
    await Promise.resolve();
    const [message] = posted as Extract<InstanceMessage, { type: 'call' }>[];
    expect(message!.asked.inputs[0]!.data).toEqual(Uint8Array.of(7, 7, 7, 7));
    expect(message!.asked.inputs[0]!.data.buffer.byteLength).toBe(4);
    settle(0);
    await asked;
  });

  it('are bounded in number', async () => {
    const waiting = Array.from({ length: MAX_CALLS }, () => calls.ask(CALL));
    await expect(calls.ask(CALL)).rejects.toThrow(
      'more than 1000 calls or 64 MiB of inputs of one instance wait for their answers; await some of them before the next',
    );
    expect(posted).toHaveLength(MAX_CALLS);
    settle(0);
    await waiting[0];
    const next = calls.ask(CALL);
    for (let call = 1; call <= MAX_CALLS; call++) settle(call);
    await Promise.all([...waiting, next]);
  });

  it('are bounded in bytes, but for one alone', async () => {
    const large = calls.ask({ ...CALL, inputs: [input(MAX_CALL_BYTES + 1)] });
    await expect(calls.ask({ ...CALL, inputs: [input(1)] })).rejects.toThrow('64 MiB of inputs');
    settle(0);
    await large;
    const two = [1, 2].map(() => calls.ask({ ...CALL, inputs: [input(MAX_CALL_BYTES / 2)] }));
    await expect(calls.ask({ ...CALL, inputs: [input(1)] })).rejects.toThrow('64 MiB of inputs');
    settle(1);
    settle(2);
    await Promise.all(two);
  });

  it.each<[string, Partial<ModelCall>, string]>([
    [
      'inputs',
      { inputs: Array.from({ length: 1025 }, () => input(1)) },
      'it has 1025 inputs; at most 1024 are taken',
    ],
    ['model', { model: 'x'.repeat(1025) }, 'its model is no text of at most 1024 characters'],
    ['model', { model: undefined as unknown as string }, 'its model is no text of at most 1024 characters'],
    ['version', { version: 'x'.repeat(1025) }, 'its version is no text of at most 1024 characters'],
    ['outputs', { outputs: Array(1025).fill('Y') }, 'its outputs are no list of at most 1024 names'],
    [
      'outputs',
      { outputs: ['x'.repeat(1025)] },
      'a name of its outputs is no text of at most 1024 characters',
    ],
    ['name', { inputs: [input(1, 'x'.repeat(1025))] }, 'the name of an input has more than 1024 characters'],
    [
      'sizes',
      { inputs: [{ ...input(1), shape: Array(33).fill(1) }] },
      "the shape of input 'X' is no list of at most 32 sizes",
    ],
    [
      'shape',
      { inputs: [{ ...input(1), shape: 5 as unknown as number[] }] },
      "the shape of input 'X' is no list of at most 32 sizes",
    ],
    [
      'parameters',
      { parameters: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`p${i}`, 1])) },
      'there are 257 parameters; at most 256 are taken',
    ],
    [
      'text',
      { parameters: { a: 'x'.repeat(65_536) } },
      'the parameters have 65537 characters; at most 65536 are taken',
    ],
    ['number', { parameters: { a: 2n ** 64n } }, "the parameter 'a' has more than 64 bits"],
    ['type', { parameters: { a: {} as unknown as string } }, "the parameter 'a' is of type object"],
  ])('are refused where they bring more than a client may: %s', async (_, more, why) => {
    await expect(calls.ask({ ...CALL, ...more })).rejects.toThrow(
      `a call of another model is refused: ${why}`,
    );
    expect([posted.length, held]).toEqual([0, 0]);
  });
});
