import { describe, expect, it } from 'vitest';
import { blocksForNextStep, blocksToCompletion } from '../../../scheduler/tokens/block-needs.js';
import { contextRequest, generationRequest } from '../../support/schedulable.js';

const NO_WINDOW = Number.POSITIVE_INFINITY;
const kv = (maxAttentionWindow = NO_WINDOW) => ({ tokensPerBlock: 8, maxAttentionWindow });

describe('blocksToCompletion', () => {
  // [prompt, maxNew, beamWidth, held, window, expected]
  it.each([
    [1, 1, 1, 0, NO_WINDOW, 1],
    [8, 8, 1, 0, NO_WINDOW, 2],
    [8, 9, 1, 0, NO_WINDOW, 3],
    [10, 30, 1, 0, NO_WINDOW, 5],
    [10, 30, 1, 2, NO_WINDOW, 3],
    [10, 30, 1, 5, NO_WINDOW, 0],
    // 10 + 30 tokens: 1 full prompt block shared, the other 4 once for each beam.
    [10, 30, 4, 0, NO_WINDOW, 17],
    [16, 8, 4, 0, NO_WINDOW, 6],
    [10, 30, 4, 5, NO_WINDOW, 12],
    // The window caps the sequence: ceil(20 / 8) blocks, of which floor(10 / 8) are shared.
    [10, 30, 1, 0, 20, 3],
    [10, 30, 4, 0, 20, 9],
    [100, 30, 1, 0, 20, 3],
    [100, 30, 4, 0, 20, 6],
    [10, 30, 1, 3, 20, 0],
  ])(
    'prompt %i, maxNew %i, beams %i, held %i, window %d: %i',
    (prompt, maxNew, beamWidth, held, window, expected) => {
      const request = contextRequest(1n, prompt, maxNew, { beamWidth, blocksHeld: held });
      expect(blocksToCompletion(request, kv(window))).toBe(expected);
    },
  );

  it('does not change when a pause moves tokens from maxNew to the prompt', () => {
    expect(blocksToCompletion(contextRequest(1n, 25, 15), kv())).toBe(
      blocksToCompletion(contextRequest(1n, 10, 30), kv()),
    );
  });
});

describe('blocksForNextStep', () => {
  // [prompt, contextPosition, beamWidth, window, expected]
  it.each([
    [1, 0, 1, NO_WINDOW, 1],
    [8, 0, 1, NO_WINDOW, 1],
    [9, 0, 1, NO_WINDOW, 2],
    [24, 8, 1, NO_WINDOW, 0],
    [20, 0, 4, NO_WINDOW, 6],
    [16, 0, 4, NO_WINDOW, 2],
    [100, 0, 1, 20, 3],
    [100, 0, 4, 20, 6],
  ])(
    'context of %i at %i, beams %i, window %d: %i',
    (prompt, contextPosition, beamWidth, window, expected) => {
      const request = contextRequest(1n, prompt, 5, { contextPosition, beamWidth });
      expect(blocksForNextStep(request, kv(window))).toBe(expected);
    },
  );

  // [prompt, generated, draft, beamWidth, window, expected]; past = prompt + generated - 1
  it.each([
    [7, 1, 0, 1, NO_WINDOW, 0],
    [8, 1, 0, 1, NO_WINDOW, 1],
    [8, 2, 0, 1, NO_WINDOW, 0],
    [5, 4, 0, 1, NO_WINDOW, 1],
    [8, 1, 0, 4, NO_WINDOW, 4],
    [7, 1, 1, 1, NO_WINDOW, 1],
    [8, 1, 8, 1, NO_WINDOW, 2],
    [8, 2, 6, 1, NO_WINDOW, 0],
    [16, 1, 0, 1, 20, 1],
    [20, 1, 0, 1, 20, 0],
    [24, 1, 0, 1, 20, 0],
    [14, 1, 7, 1, 20, 1],
  ])(
    'prompt %i, generated %i, draft %i, beams %i, window %d: %i',
    (prompt, generated, draftLength, beamWidth, window, expected) => {
      const request = generationRequest(1n, prompt, 30, generated, { draftLength, beamWidth });
      expect(blocksForNextStep(request, kv(window))).toBe(expected);
    },
  );
});
