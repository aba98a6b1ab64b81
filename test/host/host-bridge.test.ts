import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import type { FunctionCallbacks } from '../../callbacks/gpt-manager-options.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { HostMessage } from '../../callbacks/worker-messages.js';
import { HostBridge } from '../../host/host-bridge.js';
import { makeRequest } from '../../tools/support/loop-harness.js';

const bridges: { close(): void }[] = [];
afterEach(() => {
  for (const bridge of bridges.splice(0)) bridge.close();
});

/** A bridge to a worker that never answers, with what arrives there. @param givesTable see InProcessCalls */
function makeBridge(callbacks: Partial<FunctionCallbacks>, givesTable?: (requestId: bigint) => boolean) {
  const { port1, port2 } = new MessageChannel();
  const errors: string[] = [];
  const bridge = new HostBridge({
    connection: { post: (message, transfer = []) => port1.postMessage(message, transfer) },
    inProcess: givesTable && {
      ...{ sendNewTokens: () => {}, lose: () => {}, noteTurns: () => {} },
      givesTable,
    },
    callbacks: { getInferenceRequests: () => [], sendResponse: () => {}, ...callbacks },
    maxSeqLen: 16,
    maxNumSequences: 4,
    idlePollIntervalMs: 0,
    onError: (error) => errors.push(error.message),
  });
  bridges.push({ close: () => port1.close() });
  const arrived = () => (receiveMessageOnPort(port2)?.message ?? null) as HostMessage | null;
  return { bridge, errors, arrived };
}

describe('callbacks that wake the manager themselves', () => {
  it('are asked again afterwards, never inside of themselves, and never for more than there is room', async () => {
    const waiting = [1n, 1n, 2n, 3n, 4n, 5n, 6n].map((id) => makeRequest(id, [5], 3));
    const maxima: number[] = [];
    let depth = 0;
    let deepest = 0;
    const { bridge, errors, arrived } = makeBridge({
      getInferenceRequests: (max) => {
        maxima.push(max);
        deepest = Math.max(deepest, ++depth);
        if (maxima.length < 3) bridge.wake();
        depth--;
        return waiting.splice(0, Math.min(max, 3));
      },
    });
    bridge.wake();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(errors).toEqual([expect.stringMatching(/^A request with the id 1 is being processed; /)]);
    expect(deepest).toBe(1);
    expect(maxima).toEqual([4, 2]);
    const ids: bigint[] = [];
    for (let message = arrived(); message !== null; message = arrived()) {
      if (message.type === 'requests') ids.push(...message.requests.map((request) => request.requestId));
    }
    expect(ids).toEqual([1n, 2n, 3n, 4n]);
  });
});

it('memory of tables goes to the worker with the requests whose host gives it away, and is copied of others', () => {
  const withTable = (id: bigint) => {
    const request = makeRequest(id, [5], 3);
    const table = { shape: [1, 2], data: Float32Array.of(1, 2) };
    return { ...request, inputs: { ...request.inputs, prompt_embedding_table: table } };
  };
  const requests = [withTable(1n), withTable(2n), makeRequest(1n + 2n, [5], 3)];
  const tables = requests.slice(0, 2).map(({ inputs }) => inputs.prompt_embedding_table!.data);
  const { bridge, errors, arrived } = makeBridge(
    { getInferenceRequests: () => requests.splice(0) },
    (requestId) => requestId !== 1n,
  );
  bridge.wake();
  expect(errors).toEqual([]);
  const message = arrived();
  const sent = message?.type === 'requests' ? message.requests : [];
  expect(sent.map(({ inputs }) => inputs.prompt_embedding_table?.data)).toEqual([
    Float32Array.of(1, 2),
    Float32Array.of(1, 2),
    undefined,
  ]);
  expect(tables.map(({ byteLength }) => byteLength)).toEqual([8, 0]);
});

describe('callbacks that give what they should not', () => {
  it('reports stop signals that are no set and goes on', () => {
    const waiting = [makeRequest(1n, [5], 3)];
    const { bridge, errors, arrived } = makeBridge({
      getInferenceRequests: (max) => waiting.splice(0, max),
      pollStopSignals: () => 7 as unknown as Set<bigint>,
    });
    bridge.wake();
    expect(errors).toEqual([
      expect.stringMatching(/^The callback pollStopSignals failed: .*a set of ids is expected/),
    ]);
    expect(arrived()).toMatchObject({ type: 'requests' });
  });

  it.each([['x'], [5], [null], [{}], [-1n], [2n ** 64n]])(
    'reports %o among stop signals, and stops nobody',
    (id) => {
      const waiting = [makeRequest(1n, [5], 3)];
      const { bridge, errors, arrived } = makeBridge({
        getInferenceRequests: (max) => waiting.splice(0, max),
        pollStopSignals: () => new Set([1n, id]) as Set<bigint>,
      });
      bridge.wake();
      expect(errors).toEqual([
        expect.stringMatching(
          /^The callback pollStopSignals failed: .* in its set of ids; an id is a bigint from 0 to 18446744073709551615/,
        ),
      ]);
      expect(arrived()).toMatchObject({ type: 'requests' });
      expect(arrived()).toBeNull();
    },
  );

  it('passes on a tensor whose data is a DataView: the engine refuses it by name', () => {
    const request = makeRequest(1n, [5], 3);
    const data = new DataView(new ArrayBuffer(16), 4, 4) as unknown as Int32Array;
    const waiting = [{ ...request, inputs: { ...request.inputs, input_ids: { shape: [1, 1], data } } }];
    const { bridge, errors, arrived } = makeBridge({
      getInferenceRequests: (max) => waiting.splice(0, max),
    });
    bridge.wake();
    expect(errors).toEqual([]);
    expect(arrived()).toMatchObject({ type: 'requests', requests: [{ requestId: 1n }] });
  });

  it('reports ids that are no numbers, of any kind', () => {
    const waiting = [null, Object.create(null), Symbol('id')].map(
      (requestId) => ({ requestId, inputs: {} }) as unknown as InferenceRequest,
    );
    const { bridge, errors, arrived } = makeBridge({
      getInferenceRequests: (max) => waiting.splice(0, max),
    });
    bridge.wake();
    expect(errors).toHaveLength(3);
    expect(errors[1]).toMatch(/requestId is an object; it must be a bigint/);
    expect(arrived()).toBeNull();
  });
});
