import { MessageChannel } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { PortCallbacks } from '../../callbacks/port-callbacks.js';
import type { HostMessage } from '../../callbacks/worker-messages.js';
import { makeRequest } from '../support/loop-harness.js';

const { port1: host, port2: worker } = new MessageChannel();
afterEach(() => {
  host.close();
});

describe('the worker end of the bridge', () => {
  it('hears of the shutdown only when the requests sent before it are taken', () => {
    const callbacks = new PortCallbacks(worker, { statsJson: false, stats: false });
    host.postMessage({ type: 'requests', requests: [makeRequest(1n, [5], 3)] } satisfies HostMessage);
    host.postMessage({ type: 'shutdown' } satisfies HostMessage);
    expect([...callbacks.pollStopSignals()]).toEqual([]); // reads both messages in the middle of an iteration
    expect(callbacks.shutdownAsked).toBe(false);
    expect(callbacks.getInferenceRequests(4).map((request) => request.requestId)).toEqual([1n]);
    expect(callbacks.shutdownAsked).toBe(true);
  });
});
