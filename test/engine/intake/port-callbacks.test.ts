import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import type { ResponseBatch } from '../../../callbacks/response-batch.js';
import { unpackResponses } from '../../../callbacks/unpack-responses.js';
import type { HostMessage } from '../../../callbacks/worker-messages.js';
import { PortCallbacks } from '../../../engine/intake/port-callbacks.js';
import { bool, i32, LoopHarness, makeRequest, tensorOf } from '../../../tools/support/loop-harness.js';

const { port1: host, port2: worker } = new MessageChannel();
afterEach(() => {
  host.close();
});

describe('the worker end of the bridge', () => {
  it('hears of the shutdown only when the requests sent before it are taken', () => {
    const callbacks = new PortCallbacks(worker, { statsJson: false, stats: false, kvEvents: false });
    host.postMessage({ type: 'requests', requests: [makeRequest(1n, [5], 3)] } satisfies HostMessage);
    host.postMessage({ type: 'shutdown' } satisfies HostMessage);
    expect([...callbacks.pollStopSignals()]).toEqual([]); // reads both messages in the middle of an iteration
    expect(callbacks.shutdownAsked).toBe(false);
    expect(callbacks.getInferenceRequests(4).map((request) => request.requestId)).toEqual([1n]);
    expect(callbacks.shutdownAsked).toBe(true);
  });

  it('gives long requests a few at a time, so that nobody in flight waits for all to be read', () => {
    const { port1, port2 } = new MessageChannel();
    const callbacks = new PortCallbacks(port2, { statsJson: false, stats: false, kvEvents: false });
    const biased = (id: bigint) =>
      makeRequest(id, [5], 3, { logit_bias: { shape: [1, 100_000], data: new Float32Array(100_000) } });
    port1.postMessage({ type: 'requests', requests: [1n, 2n, 3n].map(biased) } satisfies HostMessage);
    port1.postMessage({ type: 'stop', requestIds: [1n, 3n] } satisfies HostMessage);
    expect(callbacks.getInferenceRequests(4).map((request) => request.requestId)).toEqual([1n, 2n]);
    expect(callbacks.hasRequests).toBe(true);
    // That of a request that is still to be taken waits for it.
    expect([...callbacks.pollStopSignals()]).toEqual([1n]);
    expect(callbacks.getInferenceRequests(2).map((request) => request.requestId)).toEqual([3n]);
    expect(callbacks.hasRequests).toBe(false);
    expect([...callbacks.pollStopSignals()]).toEqual([3n]);
    port1.close();
  });
});

describe('formations', () => {
  it('show work that is shorter than their interval, with a rest after each', () => {
    const { port1, port2 } = new MessageChannel();
    const callbacks = new PortCallbacks(port2, { statsJson: false, stats: false, kvEvents: false });
    port1.postMessage({ type: 'watch', intervalMs: 200 } satisfies HostMessage);
    callbacks.pollStopSignals();
    const harness = new LoopHarness();
    const told: string[] = [];
    const report = (wasBusy: boolean, nowMs: number) =>
      callbacks.reportFormation(wasBusy, nowMs, () => {
        told.push(`${wasBusy ? 'busy' : 'rest'} ${nowMs}`);
        return harness.loop.formation();
      });
    // Bursts of 100 ms, each with three iterations and a rest after them.
    for (const beginMs of [0, 150, 300]) {
      for (const ms of [0, 50, 100]) report(true, beginMs + ms);
      for (const ms of [101, 120]) report(false, beginMs + ms);
    }
    expect(told).toEqual(['busy 0', 'rest 101', 'busy 200', 'rest 251', 'busy 400', 'rest 401']);
    port1.close();
  });
});

describe('rows of logits', () => {
  it('are handed over with their buffers, not copied; flat arrays are copied once', () => {
    const { port1, port2 } = new MessageChannel();
    const harness = new LoopHarness();
    const everything = { return_context_logits: bool(true), return_generation_logits: bool(true) };
    const whole = { ...everything, top_context_log_probs: i32(2), streaming: bool(false) };
    harness.waiting.push(makeRequest(1n, [1, 2, 3], 20, whole), makeRequest(2n, [4, 5], 3, everything));
    const callbacks = new PortCallbacks(port2, { statsJson: false, stats: false, kvEvents: false });
    const own: ArrayBufferLike[] = [];
    harness.endIteration = (report) => {
      for (const { context, generationLogits } of report.responses.returned) {
        for (const rows of generationLogits ?? []) own.push(rows.buffer);
        if (context?.logits) own.push(context.logits.buffer);
        if (context?.logProbs) own.push(context.logProbs.logProbs.buffer);
      }
      callbacks.endIteration(report);
    };
    harness.runToEnd();
    // Two pages and the prompt of the first; three rows and the prompt of the second.
    expect(own).toHaveLength(8);
    expect(own.every(({ byteLength }) => byteLength === 0)).toBe(true);
    const shapes: string[] = [];
    for (let received = receiveMessageOnPort(port1); received; received = receiveMessageOnPort(port1)) {
      const { responses } = received.message as { responses: ResponseBatch | null };
      for (const { requestId, outputs } of responses ? unpackResponses(responses, 64) : []) {
        const { shape, data } = tensorOf(outputs, 'generation_logits')!;
        expect((data as Float32Array).every((logit) => logit >= 0 && logit < 1)).toBe(true);
        shapes.push(`${requestId}: ${shape} ${tensorOf(outputs, 'context_logits')!.shape}`);
      }
    }
    port1.close();
    expect(shapes).toEqual([
      '2: 1,1,1,100 1,2,100',
      '2: 1,1,1,100 1,1,1',
      '2: 1,1,1,100 1,1,1',
      '1: 1,1,20,100 1,3,100',
    ]);
  });
});
