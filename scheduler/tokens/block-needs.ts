import { hasStarted, type KvCapacity, type SchedulableRequest } from './types.js';

type BlockSize = Pick<KvCapacity, 'tokensPerBlock' | 'maxAttentionWindow'>;
type Lengths = Pick<SchedulableRequest, 'promptLength' | 'maxNewTokens' | 'beamWidth' | 'blocksHeld'>;

/**
 * Blocks that a request still needs to reach its greatest length.
 *
 *   tokensPerBlock 4, prompt 10, maxNew 5, beamWidth 2
 *
 *     |pppp|pppp|pp..|....|      ceil(15 / 4) = 4 blocks
 *      shared    per beam        floor(10 / 4) = 2 shared, the other 2 once for each beam: 2 + 2 * 2 = 6
 *
 * The last token of a sequence never enters the cache, so this may count one block too many. Users of the policy know
 * the rule in this form, and it errs on the safe side.
 */
export function blocksToCompletion(request: Lengths, kv: BlockSize): number {
  const { tokensPerBlock, maxAttentionWindow: window } = kv;
  const all = Math.ceil(Math.min(request.promptLength + request.maxNewTokens, window) / tokensPerBlock);
  const shared = Math.floor(Math.min(request.promptLength, window) / tokensPerBlock);
  return Math.max(0, shared + (all - shared) * request.beamWidth - request.blocksHeld);
}

/** Blocks that a request takes from the pool, beyond those that it holds, until `tokens` more of it are in the cache. */
export function blocksWithin(request: SchedulableRequest, tokens: number, kv: BlockSize): number {
  const { promptLength, generatedLength, maxNewTokens, beamWidth, blocksHeld } = request;
  // While generating, the newest token is not in the cache yet.
  const generated = request.phase === 'generation' ? generatedLength - 1 : 0;
  const newTokens = Math.max(0, Math.min(generated + tokens, maxNewTokens));
  return blocksToCompletion({ promptLength, maxNewTokens: newTokens, beamWidth, blocksHeld }, kv);
}

/** Slots for states that a request takes if it runs: one for each of its sequences, from its first chunk on. */
export function stateSlotsToStart(request: SchedulableRequest): number {
  return hasStarted(request) ? 0 : request.beamWidth;
}

/**
 * Blocks that a request takes from the pool if it runs in this iteration.
 *
 * Context: the first chunk takes the blocks of the whole prompt (full blocks shared by the beams, the partial last
 * one private to each), so later chunks take none. Generation: the block that the next token (and its draft) opens,
 * once for each beam:
 *
 *   tokensPerBlock 4, past = 8 tokens cached     |xxxx|xxxx|        the next token needs 1 block
 *                     past = 9                   |xxxx|xxxx|x...|   the next token needs none
 *
 * A window caps the blocks of a sequence: beyond it the oldest block is written over.
 */
export function blocksForNextStep(request: SchedulableRequest, kv: BlockSize): number {
  const { tokensPerBlock, maxAttentionWindow: window } = kv;
  if (request.phase === 'context') {
    if (request.contextPosition > 0) return 0;
    const tokens = Math.min(request.promptLength, window);
    const full = Math.floor(tokens / tokensPerBlock);
    return full + (tokens % tokensPerBlock === 0 ? 0 : request.beamWidth);
  }
  const past = request.promptLength + request.generatedLength - 1;
  const before = Math.ceil(Math.min(past, window) / tokensPerBlock);
  const after = Math.ceil(Math.min(past + 1 + request.draftLength, window) / tokensPerBlock);
  return (after - before) * request.beamWidth;
}
