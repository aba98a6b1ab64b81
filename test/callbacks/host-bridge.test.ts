import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { HostBridge } from '../../callbacks/host-bridge.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import { Doorbell, type HostMessage } from '../../callbacks/worker-messages.js';
import type { FunctionCallbacks } from '../../engine/gpt-manager-options.js';
import { makeRequest } from '../support/loop-harness.js';

const bridges: { close(): void }[] = [];
afterEach(() => {
  for (const bridge of bridges.splice(0)) bridge.close();
});

/** A bridge to a worker that never answers, with what arrives there. */
function makeBridge(callbacks: Partial<FunctionCallbacks>) {
  const { port1, port2 } = new MessageChannel();
  const errors: string[] = [];
  const bridge = new HostBridge({
    port: port1,
    doorbell: new Doorbell(Doorbell.createBuffer()),
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

describe('callbacks that give what they should not', () => {
  it('reports stop signals that are no set and goes on', () => {
    const waiting = [makeRequest(1n, [5], 3)];
    const { bridge, errors, arrived } = makeBridge({
      getInferenceRequests: (max) => waiting.splice(0, max),
      pollStopSignals: () => 7 as unknown as Set<bigint>,
    });
    bridge.wake();
    expect(errors).toEqual([expect.stringMatching(/^The callback pollStopSignals failed: .*not iterable/)]);
    expect(arrived()).toMatchObject({ type: 'requests' });
  });

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
