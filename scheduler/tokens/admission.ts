import { input, type NamedText, option, says } from '../../base/named-text.js';
import { blocksToCompletion } from './block-needs.js';
import { longestContext } from './micro-batch-scheduler.js';
import type { ResumeLimits } from './pause.js';
import type { SchedulableRequest } from './types.js';

export interface AdmissionLimits extends ResumeLimits {
  /** Most tokens of a sequence, prompt and generated ones together. */
  maxSeqLen: number;
  /** Number of blocks in the whole pool. */
  numBlocks: number;
  tokensPerBlock: number;
  /** Tokens attended to; Infinity without a window. */
  maxAttentionWindow: number;
  /** Slots for the states of sequences; absent: the model has no states. */
  numStateSlots?: number;
}

/**
 * Reason why a request can never run: the tensor that is too large, if there is one, and a sentence with the numbers.
 */
export interface Refusal {
  field: string | null;
  text: NamedText;
}

const ofPrompt = (text: NamedText): Refusal => ({ field: 'input_ids', text });
const ofSequences = (text: NamedText): Refusal => ({ field: null, text });

/**
 * Reason why a request could never finish even with the engine to itself, as a sentence with the numbers; null if it
 * could. Asked once, before a request enters the list: the schedulers rely on it, since a request at the head of the
 * list that never fits would stop every request behind it.
 */
export function whyItCanNeverRun(
  request: Pick<
    SchedulableRequest,
    'promptLength' | 'maxNewTokens' | 'beamWidth' | 'draftLength' | 'wholeSpans'
  >,
  limits: AdmissionLimits,
): Refusal | null {
  const { promptLength, maxNewTokens } = request;
  if (promptLength < 1) return ofPrompt('The prompt is empty; at least 1 token is needed.');
  if (maxNewTokens < 1) return ofSequences(`${maxNewTokens} new tokens are asked for; at least 1 is needed.`);
  const { maxSequences = Number.POSITIVE_INFINITY } = limits.microBatch;
  if (request.beamWidth > maxSequences) {
    return ofSequences(
      says`${request.beamWidth} sequences are asked for; an iteration takes at most ${maxSequences} (${option('maxBatchSize')} x ${option('maxBeamWidth')}).`,
    );
  }
  const { numStateSlots = Number.POSITIVE_INFINITY } = limits;
  if (request.beamWidth > numStateSlots) {
    return ofSequences(
      `${request.beamWidth} sequences are asked for; there is memory for the states of ${numStateSlots}.`,
    );
  }
  if (promptLength > limits.maxInputLen) {
    return ofPrompt(
      says`The prompt of ${promptLength} tokens is longer than ${option('maxInputLen')} = ${limits.maxInputLen}.`,
    );
  }
  const finalLength = promptLength + maxNewTokens;
  if (finalLength > limits.maxSeqLen) {
    return ofPrompt(
      says`The prompt of ${promptLength} tokens and ${maxNewTokens} new tokens make ${finalLength}, more than ${option('maxSeqLen')} = ${limits.maxSeqLen}.`,
    );
  }
  return (
    whyTheWindowIsTooSmall(request, limits) ??
    whyThePoolIsTooSmall(request, limits) ??
    whyNoIterationTakesIt(request, limits) ??
    whyASpanIsTooLong(request, limits)
  );
}

/**
 * Reason to refuse several sequences that outgrow the window: they share blocks, and past the window a sequence writes
 * over its blocks.
 */
function whyTheWindowIsTooSmall(
  {
    promptLength,
    maxNewTokens,
    beamWidth,
  }: Pick<SchedulableRequest, 'promptLength' | 'maxNewTokens' | 'beamWidth'>,
  { maxAttentionWindow, tokensPerBlock }: AdmissionLimits,
): Refusal | null {
  const held = Math.ceil(maxAttentionWindow / tokensPerBlock) * tokensPerBlock;
  const finalLength = promptLength + maxNewTokens;
  if (beamWidth === 1 || finalLength <= held) return null;
  return ofSequences(
    says`${beamWidth} sequences of up to ${finalLength} tokens are asked for (${input('beam_width')}, ${input('num_return_sequences')} or ${input('best_of')}); past the ${held} tokens that their attention window (${option('maxAttentionWindow')}) keeps, they would write over blocks that they share.`,
  );
}

function whyThePoolIsTooSmall(
  request: Pick<SchedulableRequest, 'promptLength' | 'maxNewTokens' | 'beamWidth'>,
  limits: AdmissionLimits,
): Refusal | null {
  const { promptLength, maxNewTokens, beamWidth } = request;
  const needed = blocksToCompletion({ promptLength, maxNewTokens, beamWidth, blocksHeld: 0 }, limits);
  if (needed <= limits.numBlocks) return null;
  const beams = beamWidth > 1 ? ` in ${beamWidth} sequences` : '';
  return ofPrompt(
    `The prompt of ${promptLength} tokens and ${maxNewTokens} new tokens${beams} need ${needed} ` +
      `KV cache blocks of ${limits.tokensPerBlock} tokens; the pool has ${limits.numBlocks}.`,
  );
}

function whyNoIterationTakesIt(
  request: Pick<SchedulableRequest, 'promptLength' | 'beamWidth' | 'draftLength'>,
  limits: AdmissionLimits,
): Refusal | null {
  const { promptLength, beamWidth, draftLength } = request;
  const { maxNumTokens, chunking } = limits.microBatch;
  if (beamWidth + draftLength > maxNumTokens) {
    return ofSequences(
      says`A generation step of ${beamWidth} sequence(s) and ${draftLength} draft token(s) takes ${beamWidth + draftLength} tokens, more than ${option('maxNumTokens')} = ${maxNumTokens}.`,
    );
  }
  const longest = longestContext(limits.microBatch, draftLength);
  if (promptLength <= longest) return null;
  if (chunking) {
    return ofPrompt(
      `The prompt of ${promptLength} tokens needs chunks of ${chunking.unit} tokens; an iteration takes ` +
        `at most ${longest} context tokens.`,
    );
  }
  const draft = draftLength > 0 ? ` and ${draftLength} draft tokens do` : ' does';
  return ofPrompt(
    says`The prompt of ${promptLength} tokens${draft} not fit into one iteration of ${option('maxNumTokens')} = ${maxNumTokens}; chunked context is off.`,
  );
}

/**
 * Reason to refuse a span that has to run in one iteration: it would not fit in with as many other sequences
 * as may generate, whose tokens come first.
 */
function whyASpanIsTooLong(
  { wholeSpans = [] }: Pick<SchedulableRequest, 'wholeSpans'>,
  { microBatch: { chunking, maxNumTokens, maxBatchSize, maxSequences = maxBatchSize } }: AdmissionLimits,
): Refusal | null {
  if (chunking === undefined) return null;
  const room = maxNumTokens - (maxSequences - 1);
  const span = wholeSpans.find(({ start, end }) => end - start > room);
  if (span === undefined) return null;
  return ofPrompt(
    says`The picture at place ${span.start} has ${span.end - span.start} tokens, which attend to one another and so run in one iteration; of ${option('maxNumTokens')} = ${maxNumTokens} there are ${Math.max(0, room)} for them where ${maxSequences - 1} other sequences generate.`,
  );
}
