import { describe, expect, it } from 'vitest';
import { RESPONSE_COLUMNS, RESPONSE_TABLE, transferables } from '../../../callbacks/response-batch.js';
import { ResponseReader } from '../../../callbacks/unpack-responses.js';
import { SamplingResults } from '../../../engine/decoding/sampling-results.js';
import { validateRequest } from '../../../engine/intake/request-validation.js';
import { ResponseWriter } from '../../../engine/intake/response-writer.js';
import { LlmRequest } from '../../../engine/request/llm-request.js';
import { makeRequest } from '../../../tools/support/loop-harness.js';

const VOCAB = 1000;
const TOP = 2;
const i32 = (value: number) => ({ shape: [1], data: Int32Array.of(value) });

/** A request that streams, of a prompt of 3, that has drawn the tokens 100 * id, 100 * id + 1, ... of which none is sent. */
function streaming(id: number, numTokens: number): LlmRequest {
  const sizes = {
    vocabSize: VOCAB,
    promptRowWidth: 8,
    turnsByGrid: false,
    maxSeqLen: 1000,
    attendsToAll: true,
  };
  const limits = { ...sizes, maxBeamWidth: 1, maxTopLogProbs: VOCAB };
  const flag = { shape: [1], data: Uint8Array.of(1) };
  const inputs = { streaming: flag, return_log_probs: flag, top_log_probs: i32(TOP) };
  const spec = validateRequest(makeRequest(BigInt(id), [1, 2, 3], 500, inputs), limits, () => 7n);
  const request = new LlmRequest(spec, 0, VOCAB);
  request.chunkLength = 3;
  request.finishChunk();
  const output = new SamplingResults(1);
  output.makeRoom({ numRows: 1, numTopLogProbs: Int32Array.of(TOP) });
  output.topStart.set([0, TOP]);
  for (let i = 0; i < numTokens; i++) {
    output.tokens[0] = (100 * id + i) % VOCAB;
    output.logProbs[0] = -id - i / 512;
    output.topTokens.set([i, id]);
    output.topLogProbs.set([-i, -id]);
    request.append(output, 0, i === 0);
  }
  return request;
}

function read(batch: ConstructorParameters<typeof ResponseReader>[0]) {
  const reader = new ResponseReader(batch, 1000);
  const found = [];
  while (reader.next()) found.push({ id: Number(reader.requestId), ...reader.newTokens() });
  return found;
}

function expected(id: number, numTokens: number) {
  const places = Array.from({ length: numTokens }, (_, i) => i);
  return {
    id,
    tokens: Int32Array.from(places, (i) => (100 * id + i) % VOCAB),
    logProbs: Float32Array.from(places, (i) => -id - i / 512),
    topTokens: Int32Array.from(places.flatMap((i) => [i, id])),
    topLogProbs: Float32Array.from(places.flatMap((i) => [-i, -id])),
    finishReason: null,
  };
}

describe('ResponseWriter', () => {
  it.each([1, 64, 65, 129, 300])('hands %i responses over in one buffer of just their size', (count) => {
    const writer = new ResponseWriter();
    const lengthOf = (id: number) => 1 + (id % 7);
    for (let id = 0; id < count; id++) writer.add(streaming(id, lengthOf(id)), false);
    const snapshot = writer.snapshot();
    const ids = Array.from({ length: count }, (_, id) => id);
    expect(read(snapshot)).toEqual(ids.map((id) => expected(id, lengthOf(id))));
    const token = ids.reduce((sum, id) => sum + lengthOf(id), 0);
    const counts = { response: count, token, logProb: token, topEntry: TOP * token };
    expect(transferables(snapshot)).toEqual([snapshot.requestIds.buffer]);
    expect(snapshot.requestIds.buffer.byteLength).toBe(RESPONSE_TABLE.byteLength(counts));
    for (const name of Object.keys(RESPONSE_COLUMNS) as (keyof typeof RESPONSE_COLUMNS)[]) {
      expect(snapshot[name].buffer, name).toBe(snapshot.requestIds.buffer);
    }
  });

  it('keeps what a response has when one that comes after it makes the arrays grow', () => {
    const writer = new ResponseWriter();
    for (const [id, length] of [3, 400, 2, 1].entries()) writer.add(streaming(id, length), false);
    const wanted = [expected(0, 3), expected(1, 400), expected(2, 2), expected(3, 1)];
    expect(read(writer)).toEqual(wanted);
    expect(read(writer.snapshot())).toEqual(wanted);
  });

  it('is empty again once it is cleared, and a snapshot from before is not touched', () => {
    const writer = new ResponseWriter();
    writer.add(streaming(1, 5), false);
    const snapshot = writer.snapshot();
    writer.clear();
    expect(read(writer.snapshot())).toEqual([]);
    writer.add(streaming(2, 1), false);
    expect(read(writer.snapshot())).toEqual([expected(2, 1)]);
    expect(read(snapshot)).toEqual([expected(1, 5)]);
  });

  it('has times, counts and all else of a last response cross with it', () => {
    const writer = new ResponseWriter();
    const request = streaming(4, 2);
    Object.assign(request.timing, {
      arrivalMs: 10,
      firstScheduledMs: 12,
      firstTokenMs: 15,
      numIterations: 3,
    });
    writer.add(streaming(3, 1), false);
    writer.add(request, true);
    const { timesMs, numIterations, reuseAndPauses, seeds, cumLogProbs } = writer.snapshot();
    expect([...timesMs.subarray(3)]).toEqual([2, 5, -1]);
    expect(numIterations[1]).toBe(3);
    expect([...reuseAndPauses.subarray(3)]).toEqual([request.reusedBlocks, request.missedBlocks, 0]);
    expect([...seeds]).toEqual([7n, 7n]);
    expect(cumLogProbs[1]).toBeCloseTo(-8 - 1 / 512, 6);
  });

  it('tells the progress of a prompt between tokens of others, and not again what a pause takes back', () => {
    const flag = { shape: [1], data: Uint8Array.of(1) };
    const limits = {
      vocabSize: VOCAB,
      promptRowWidth: 8,
      turnsByGrid: false,
      maxSeqLen: 1000,
      attendsToAll: true,
      maxBeamWidth: 1,
      maxTopLogProbs: 5,
    };
    const asked = makeRequest(9n, [1, 2, 3, 4, 5, 6, 7, 8], 5, { return_context_progress: flag });
    const request = new LlmRequest(
      validateRequest(asked, limits, () => 7n),
      0,
      VOCAB,
    );
    Object.assign(request.timing, { firstScheduledMs: 100, lastContextMs: 130.5 });
    const writer = new ResponseWriter();
    const chunk = (length: number) => {
      request.chunkLength = length;
      request.finishChunk();
      if (request.hasProgress) writer.add(request, false);
    };
    chunk(3);
    writer.add(streaming(1, 2), false);
    chunk(2);
    request.pause({ maxInputLen: 100, microBatch: { maxBatchSize: 8, maxNumTokens: 64, maxSequences: 8 } });
    chunk(4);
    writer.add(streaming(2, 1), false);
    chunk(4);
    const reader = new ResponseReader(writer.snapshot(), 1000);
    const found = [];
    while (reader.next()) {
      const { requestId } = reader;
      const id = Number(requestId);
      if (reader.isOnlyTokens) found.push({ id, ...reader.newTokens() });
      else found.push(reader.unpack());
    }
    const told = (done: number) => ({
      requestId: 9n,
      outputs: [{ name: 'context_progress', shape: [1, 3], data: Int32Array.of(done, 0, 30) }],
      final: false,
      error: '',
    });
    expect(found.filter((one) => 'outputs' in one && one.requestId === 9n)).toEqual([
      told(3),
      told(5),
      told(8),
    ]);
    expect(found).toHaveLength(5);
    expect(read(writer).filter(({ id }) => id !== 9)).toEqual([expected(1, 2), expected(2, 1)]);
  });
});
