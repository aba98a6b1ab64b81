import { z } from 'zod';
import type { IterationStats } from '../callbacks/iteration-stats.js';
import type { TokenPiece } from '../callbacks/token-request.js';
import type { KvCacheEvent } from '../kvcache/cache-events.js';
import type { JsonForm } from '../src/library/contracts/json-form.js';
import { count, floats, sameType, token, tokens, u64 } from '../src/library/contracts/token-request.js';

const ms = z.number();
const since = ms.nullable();

const piece = z.strictObject({
  tokens,
  logProbs: floats.optional(),
  topTokens: tokens.optional(),
  topLogProbs: floats.optional(),
  generationLogits: floats.optional(),
  contextLogits: floats.optional(),
  contextLogProbs: floats.optional(),
  contextTopTokens: tokens.optional(),
  contextTopLogProbs: floats.optional(),
  contextProgress: z.strictObject({ done: count, cached: count, ms }).optional(),
  cachedTokens: count.optional(),
  finishReason: z.enum(['stop', 'length', 'cancelled', 'timeout']).nullable(),
  timing: z
    .strictObject({
      firstScheduledMs: since,
      firstTokenMs: since,
      lastTokenMs: since,
      numIterations: count,
      numPauses: count,
      reusedBlocks: count,
      missedBlocks: count,
    })
    .optional(),
  cumLogProb: z.number().optional(),
  seed: u64.optional(),
});

const states = z.strictObject({
  slots: count,
  usedSlots: count,
  snapshots: count,
  keptSnapshots: count,
  hits: count,
  lost: count,
});

const disk = z.strictObject({
  files: count,
  bytes: count,
  maxBytes: count,
  hits: count,
  misses: count,
  readBytes: count,
  writtenBlocks: count,
  damaged: count,
  errors: count,
});

const stats = z.strictObject({
  iteration: count,
  iterationMs: ms,
  executorMs: ms,
  waitedMs: ms,
  expertReadBytes: count,
  microBatchId: count,
  activeRequests: count,
  newRequests: count,
  newRequestsQueueMs: ms,
  queuedRequests: count,
  scheduledRequests: count,
  contextRequests: count,
  generationRequests: count,
  pausedRequests: count,
  completedRequests: count,
  contextTokens: count,
  queriedTokens: count,
  reusedTokens: count,
  generatedTokens: count,
  drafts: count,
  draftedTokens: count,
  acceptedDraftTokens: count,
  acceptedByPosition: z.array(count),
  emptyGenerationSlots: count,
  maxBlocks: count,
  freeBlocks: count,
  usedBlocks: count,
  heldBlocks: count,
  tokensPerBlock: count,
  reusedBlocks: count,
  missedBlocks: count,
  secondaryUsedBlocks: count,
  swappedOutBlocks: count,
  swappedInBlocks: count,
  states: z.nullable(states),
  disk: z.nullable(disk),
  maxRequests: count,
  totalIterationMs: ms,
  totalExecutorMs: ms,
  totalContextTokens: count,
  totalGeneratedTokens: count,
  totalPauses: count,
  totalReplayMismatches: count,
});

const change = z.strictObject({ oldValue: z.number().int(), newValue: z.number().int() });
const stateChange = z.strictObject({ oldValue: z.boolean(), newValue: z.boolean() });
const hash = z.number().int();
const storedBlock = z.strictObject({
  blockHash: hash,
  tokens: z.array(token),
  loraId: u64.nullable(),
  cacheSalt: u64,
  cacheLevel: count,
  priority: count,
});

const event = z.strictObject({
  eventId: count,
  data: z.union([
    z.strictObject({ type: z.literal('created'), numBlocksPerCacheLevel: z.array(count) }),
    z.strictObject({ type: z.literal('stored'), parentHash: hash.nullable(), blocks: z.array(storedBlock) }),
    z.strictObject({ type: z.literal('removed'), blockHashes: z.array(hash) }),
    z.strictObject({ type: z.literal('updated'), blockHash: hash, priority: change }),
    z.strictObject({ type: z.literal('updated'), blockHash: hash, cacheLevel: change }),
    z.strictObject({ type: z.literal('updated'), blockHash: hash, hasState: stateChange }),
  ]),
});

sameType<z.output<typeof piece>, JsonForm<TokenPiece>>(true);
sameType<z.output<typeof stats>, JsonForm<IterationStats>>(true);
sameType<z.output<typeof event>, JsonForm<KvCacheEvent>>(true);

/** A TokenPiece as JSON. */
export const TOKEN_PIECE: z.ZodType = piece;

/** IterationStats as JSON. */
export const ITERATION_STATS: z.ZodType = stats;

/** A KvCacheEvent as JSON. */
export const KV_CACHE_EVENT: z.ZodType = event;
