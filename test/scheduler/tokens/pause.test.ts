import { describe, expect, it } from 'vitest';
import { lengthsAfterPause } from '../../../scheduler/tokens/pause.js';
import type { MicroBatchLimits } from '../../../scheduler/tokens/types.js';
import { contextRequest, generationRequest } from '../../support/schedulable.js';

const chunked: MicroBatchLimits = {
  maxBatchSize: 8,
  maxNumTokens: 16,
  chunking: { policy: 'FIRST_COME_FIRST_SERVED', unit: 8 },
};
const whole: MicroBatchLimits = { maxBatchSize: 8, maxNumTokens: 16 };

describe('lengthsAfterPause', () => {
  it('makes the prompt of prompt and generated tokens and keeps the final length', () => {
    const request = generationRequest(1n, 10, 6, 4);
    const limits = { maxInputLen: 100, microBatch: chunked };
    expect(lengthsAfterPause(request, limits)).toEqual({ promptLength: 14, maxNewTokens: 2 });
  });

  it('keeps a prompt that was still in its context phase', () => {
    const request = contextRequest(1n, 30, 6, { contextPosition: 8, blocksHeld: 4 });
    const limits = { maxInputLen: 100, microBatch: chunked };
    expect(lengthsAfterPause(request, limits)).toEqual({ promptLength: 30, maxNewTokens: 6 });
  });

  it('drops what is beyond maxInputLen', () => {
    const limits = { maxInputLen: 12, microBatch: chunked };
    expect(lengthsAfterPause(generationRequest(1n, 10, 6, 4), limits)).toEqual({
      promptLength: 12,
      maxNewTokens: 4,
    });
  });

  it('without chunking drops what one iteration could not take again', () => {
    const limits = { maxInputLen: 100, microBatch: whole };
    expect(lengthsAfterPause(generationRequest(1n, 10, 20, 14), limits)).toEqual({
      promptLength: 16,
      maxNewTokens: 14,
    });
    expect(lengthsAfterPause(generationRequest(1n, 10, 20, 14, { draftLength: 2 }), limits)).toEqual({
      promptLength: 14,
      maxNewTokens: 16,
    });
  });

  it('drops all generated tokens of beams', () => {
    const request = generationRequest(1n, 10, 6, 4, { beamWidth: 2 });
    const limits = { maxInputLen: 100, microBatch: chunked };
    expect(lengthsAfterPause(request, limits)).toEqual({ promptLength: 10, maxNewTokens: 6 });
  });
});
