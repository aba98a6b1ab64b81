import { MAX_INT32 } from '../../../../base/int32.js';
import { MAX_STATE_SLOTS } from '../../../../kvcache/kv-cache-size.js';
import { takesWholeSequences } from '../../../../network/attention-mask.js';
import { headsOf } from '../../../../network/cache-layers.js';
import type { NetworkPlan } from '../../../../network/plan.js';
import { MAX_STEP_ROWS } from '../../../packed-call/call-limits.js';
import type { ExecutorOptions } from '../../executor.js';

const GREATEST = 2 ** 30;

/**
 * Checks an executor's options, and the shape of the network's attention, against the native executor's limits. The ops
 * are not checked: native code must do so before it touches memory by them, but here an op that does not fit makes the
 * tensor library fail.
 */
export function checkOptions(plan: NetworkPlan, options: ExecutorOptions): void {
  checkAttention(plan);
  const { numBlocks, numSecondaryBlocks = 0, tokensPerBlock } = options;
  checkRange('threads', options.threads, 1, 1024);
  checkRange('maxNumTokens', options.maxNumTokens, 1, MAX_STEP_ROWS);
  checkRange('maxNumSequences', options.maxNumSequences, 1, MAX_STEP_ROWS);
  checkRange('maxLogitRows', options.maxLogitRows, 1, MAX_STEP_ROWS);
  checkRange('maxSeqLen', options.maxSeqLen, 1, GREATEST);
  checkRange('numBlocks', numBlocks, 1, GREATEST);
  checkRange('numSecondaryBlocks', numSecondaryBlocks, 0, GREATEST);
  checkRange('tokensPerBlock', tokensPerBlock, 8, 2 ** 16);
  if (!Number.isInteger(Math.log2(tokensPerBlock)))
    throw new Error(`tokensPerBlock must be a power of two, but it is ${tokensPerBlock}.`);
  checkRange('numBlocks x tokensPerBlock', (numBlocks + numSecondaryBlocks) * tokensPerBlock, 1, MAX_INT32);
  const { numStateSlots = 0, numDraftSlots = 0, stateDraftRows = 0 } = options;
  checkRange('numStateSlots', numStateSlots, plan.states === undefined ? 0 : 1, MAX_STATE_SLOTS);
  checkRange('numDraftSlots', numDraftSlots, 0, numStateSlots);
  checkRange('stateDraftRows', stateDraftRows, 0, 2 ** 16 - 1);
  checkWindow(plan, options);
}

function checkAttention({ vocabSize, outputWidth, attention, caches, states = [] }: NetworkPlan): void {
  const { numLayers, numHeads, rotaryDim, ropeTables = [] } = attention;
  checkRange('vocabSize', vocabSize, 1, GREATEST);
  checkRange('outputWidth', outputWidth, 1, GREATEST);
  // Layers that keep states alone need no cache.
  checkRange('numLayers', numLayers, states.length > 0 ? 0 : 1, 2 ** 16);
  checkRange('numHeads', numHeads, 1, 2 ** 12);
  checkRange('rotaryDim', rotaryDim, 0, 2 ** 12);
  checkRange('the number of caches', caches.length, numLayers, numLayers);
  for (const [layer, { kvHeads, keyDim, valueDim }] of caches.entries()) {
    const heads = headsOf(attention, layer);
    checkRange('heads', heads, 1, numHeads);
    checkRange('kvHeads', kvHeads, 1, heads);
    checkRange('keyDim', keyDim, 1, 2 ** 12);
    checkRange('valueDim', valueDim, 1, 2 ** 12);
    if (heads % kvHeads === 0) continue;
    throw new Error(`numHeads must be a multiple of kvHeads, but they are ${heads} and ${kvHeads}.`);
  }
  if (rotaryDim % 2 !== 0) throw new Error(`rotaryDim must be even, but it is ${rotaryDim}.`);
  for (const { length } of ropeTables)
    checkRange('The number of frequencies of a RoPE table', length, 0, 2 ** 11);
}

function checkWindow({ attention, ops }: NetworkPlan, options: ExecutorOptions): void {
  const { maxAttentionWindow = 0, sinkTokenLength = 0 } = options;
  checkRange('maxAttentionWindow', maxAttentionWindow, 0, GREATEST);
  checkRange('sinkTokenLength', sinkTokenLength, 0, Math.max(maxAttentionWindow - 1, 0));
  if (takesWholeSequences({ attention, ops }) && maxAttentionWindow > 0) {
    throw new Error(
      `maxAttentionWindow is ${maxAttentionWindow}, but a network that takes whole sequences has no window of the engine.`,
    );
  }
  const isOwn = ops.some(
    (op) =>
      (op.op === 'attention' && op.mask?.window !== undefined) ||
      (op.op === 'ropeAndCache' && op.table !== undefined),
  );
  if (sinkTokenLength > 0 && isOwn) {
    throw new Error(
      `sinkTokenLength is ${sinkTokenLength}, but with layers that have a window or a RoPE of their own there are ` +
        'no sinks.',
    );
  }
}

function checkRange(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new Error(`${name} must be between ${least} and ${most}, but it is ${value}.`);
}
