import { longestContext } from './micro-batch-scheduler.js';
import type { MicroBatchLimits, SchedulableRequest } from './types.js';

export interface ResumeLimits {
  maxInputLen: number;
  microBatch: MicroBatchLimits;
}

/**
 * Lengths with which a paused request starts again: what it generated becomes part of its prompt, and the tokens
 * still allowed fall by as much, so that the final length stays. The context restarts at 0 and all blocks go back.
 *
 *   prompt 10, maxNew 6, generated 4     pppppppppp gggg..
 *   after the pause                      pppppppppppppp ..     prompt 14, maxNew 2, generated 0
 *
 * The new prompt is at most maxInputLen long, and without chunking at most what one iteration can take, because a
 * longer one could never run again. Tokens beyond that are dropped and generated a second time. With beams all
 * generated tokens are dropped, because it is known only at the end which of them survive.
 */
export function lengthsAfterPause(
  request: Pick<
    SchedulableRequest,
    'promptLength' | 'generatedLength' | 'maxNewTokens' | 'beamWidth' | 'draftLength'
  >,
  limits: ResumeLimits,
): { promptLength: number; maxNewTokens: number } {
  const { promptLength, generatedLength, maxNewTokens } = request;
  const longest = Math.min(limits.maxInputLen, longestContext(limits.microBatch, request.draftLength));
  const room = Math.max(0, longest - promptLength);
  const kept = request.beamWidth > 1 ? 0 : Math.min(generatedLength, room);
  return { promptLength: promptLength + kept, maxNewTokens: maxNewTokens - kept };
}
