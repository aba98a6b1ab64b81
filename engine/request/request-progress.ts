import type { ReuseCounts, SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import { lengthsAfterPause, type ResumeLimits } from '../../scheduler/pause.js';
import type { SchedulableRequest } from '../../scheduler/types.js';

/**
 * How far a request is: what the schedulers see of it, and how a chunk, a token and a pause move it on. It knows
 * lengths only; LlmRequest adds tokens, stop conditions and responses, the simulator needs little more.
 *
 *   context --(last chunk: a token)--> generation --> complete
 *      ^-------------- pause ---------------|
 */
export abstract class RequestProgress implements SchedulableRequest {
  readonly requestId: bigint;
  readonly priority: number;
  abstract readonly beamWidth: number;
  abstract readonly draftLength: number;
  phase: 'context' | 'generation' = 'context';
  promptLength: number;
  generatedLength = 0;
  maxNewTokens: number;
  contextPosition = 0;
  /** Its place in the order in which requests became active. */
  arrivalNumber = 0;
  /** Iterations in which it was active and did not run, over all runs; counted by the planner. */
  waitedIterations = 0;
  /** See SchedulableRequest; counted by the planner. */
  passedOver = 0;
  /** It has waited too long, and nobody that came later stands before it: see ActiveRequests. */
  hasAged = false;
  /** Blocks in its table, kept up to date by the planner. */
  blocksHeld = 0;
  /** Context tokens of the running iteration; 0 while generating. */
  chunkLength = 0;
  /** Its step runs while the loop goes on: until that ends it keeps its blocks and everything else. */
  inFlight = false;
  /** See SchedulableRequest; set by whoever lets it wait, before each plan. */
  isHeld = false;
  /** Kept up to date by the planner while in the context phase. */
  firstMissingBlock: number | null = null;
  /** Version of the cache for which firstMissingBlock holds. */
  firstMissingAsOf = -1;
  /** Tokens whose keys and values are in the cache and went into logits that were finite. */
  numVerified = 0;
  /** Prompt tokens that its first run found in the cache. */
  cachedTokens = 0;
  /** Full blocks found and missed in the cache, over all runs. */
  reusedBlocks = 0;
  missedBlocks = 0;
  numPauses = 0;
  #hasBegun = false;

  constructor(requestId: bigint, lengths: { promptLength: number; maxNewTokens: number; priority: number }) {
    this.requestId = requestId;
    this.priority = lengths.priority;
    this.promptLength = lengths.promptLength;
    this.maxNewTokens = lengths.maxNewTokens;
  }

  /**
   * The longest draft that any step of it can have. A resumed prompt must leave room for it: where tokens are dropped,
   * there is again more to draft than before the pause.
   */
  get longestDraft(): number {
    return this.draftLength;
  }

  /** True once it needs no further iteration. */
  abstract get isComplete(): boolean;

  /** What it shares with others through the cache; null: nothing. */
  get shared(): SharedPrefix | null {
    return null;
  }

  /** Begins the context behind what the cache had of it; the running chunk ends with the prompt at the latest. */
  beginContext(found: ReuseCounts): void {
    this.contextPosition = found.reusedTokens;
    this.chunkLength = Math.min(this.chunkLength, this.promptLength - found.reusedTokens);
    if (!this.#hasBegun) this.cachedTokens = found.reusedTokens;
    this.#hasBegun = true;
    this.reusedBlocks += found.reusedBlocks;
    this.missedBlocks += found.missedBlocks;
  }

  /** Tokens of the sequence in this run; the next one is drawn for this position. */
  get numTokens(): number {
    return this.promptLength + this.generatedLength;
  }

  /** Length of the sequence when its last token is drawn; a pause does not change it. */
  get finalLength(): number {
    return this.promptLength + this.maxNewTokens;
  }

  /** True where the running iteration computes the logits of this request's next token. */
  get drawsToken(): boolean {
    return this.phase === 'generation' || this.contextPosition + this.chunkLength === this.promptLength;
  }

  /** Ends the chunk that has just run. */
  finishChunk(): void {
    this.contextPosition += this.chunkLength;
    this.chunkLength = 0;
    if (this.contextPosition === this.promptLength) this.phase = 'generation';
  }

  /** Back to the context phase in place; what was generated joins the prompt. Its blocks are the planner's to free. */
  pause(limits: ResumeLimits): void {
    this.numPauses++;
    this.#startAgain(limits);
  }

  /** Before its first step: it is where a pause behind so many generated tokens would have left it. */
  protected enterPaused(generatedLength: number, limits: ResumeLimits): void {
    this.generatedLength = generatedLength;
    this.#startAgain(limits);
  }

  #startAgain(limits: ResumeLimits): void {
    const { beamWidth, generatedLength, longestDraft: draftLength } = this;
    const lengths = { promptLength: this.promptLength, maxNewTokens: this.maxNewTokens, generatedLength };
    const { promptLength, maxNewTokens } = lengthsAfterPause({ ...lengths, beamWidth, draftLength }, limits);
    this.promptLength = promptLength;
    this.maxNewTokens = maxNewTokens;
    this.generatedLength = 0;
    this.contextPosition = 0;
    this.chunkLength = 0;
    this.blocksHeld = 0;
    this.numVerified = 0;
    this.firstMissingAsOf = -1;
    this.phase = 'context';
  }
}
