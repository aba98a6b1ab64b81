import type { ReuseCounts, SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import { lengthsAfterPause, type ResumeLimits } from '../../scheduler/tokens/pause.js';
import type { AdapterNeed, SchedulableRequest, TokenSpan } from '../../scheduler/tokens/types.js';
import { uncutLength } from '../../scheduler/tokens/whole-spans.js';

/**
 * State of a request for the schedulers, and how a chunk, a token and a pause change it. It knows lengths only;
 * LlmRequest adds tokens, stop conditions and responses, the simulator needs little more.
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
  /** Number of the request in the order in which requests became active. */
  arrivalNumber = 0;
  /** Number of iterations in which it was active and did not run, over all runs; counted by the planner. */
  waitedIterations = 0;
  /** See SchedulableRequest; counted by the planner. */
  passedOver = 0;
  /** True if it has waited too long, so that no later request stands before it: see ActiveRequests. */
  hasAged = false;
  /** Number of blocks in its table, kept up to date by the planner. */
  blocksHeld = 0;
  /** Context tokens of the running iteration; 0 while generating. */
  chunkLength = 0;
  /** True while its step runs and the loop goes on: until the step ends it keeps its blocks and everything else. */
  inFlight = false;
  /** LoRA adapter that all its steps read; null: none. */
  adapter: AdapterNeed | null = null;
  /** See SchedulableRequest; set before each plan, if the request has to wait. */
  isHeld = false;
  /** See SchedulableRequest; kept up to date by the planner while in the context phase. */
  firstMissingBlock: number | null = null;
  /** Version of the cache for which firstMissingBlock holds. */
  firstMissingAsOf = -1;
  /** Number of tokens whose keys and values are in the cache and whose logits were finite. */
  numVerified = 0;
  /** Number of prompt tokens that its first run found in the cache. */
  cachedTokens = 0;
  /** Numbers of full blocks found and missed in the cache, over all runs. */
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
   * Length of the longest draft that any step of it can have. A resumed prompt must leave room for it: if tokens were
   * dropped, there is again more to draft than before the pause.
   */
  get longestDraft(): number {
    return this.draftLength;
  }

  /** True while it is paused: it has lost its blocks, and begins again when it has found some. */
  get isPaused(): boolean {
    return this.phase === 'context' && this.blocksHeld === 0 && this.numPauses > 0;
  }

  /** True once it needs no further iteration. */
  abstract get isComplete(): boolean;

  /** See SchedulableRequest. */
  get wholeSpans(): readonly TokenSpan[] | undefined {
    return undefined;
  }

  /** Data by which it shares blocks through the cache; null: none. */
  get shared(): SharedPrefix | null {
    return null;
  }

  /**
   * Begins the context after the part found in the cache; the running chunk ends with the prompt at the
   * latest. It has no token where it would cut a span that begins here.
   */
  beginContext(found: ReuseCounts): void {
    this.contextPosition = found.reusedTokens;
    const planned = Math.min(this.chunkLength, this.promptLength - found.reusedTokens);
    const uncut = uncutLength(this, 0, planned);
    // A span that is longer than what was planned for has to wait for the next iteration.
    this.chunkLength = uncut > planned ? 0 : uncut;
    if (!this.#hasBegun) this.cachedTokens = found.reusedTokens;
    this.#hasBegun = true;
    this.reusedBlocks += found.reusedBlocks;
    this.missedBlocks += found.missedBlocks;
  }

  /** Number of the sequence's tokens in this run; the next one is drawn for this position. */
  get numTokens(): number {
    return this.promptLength + this.generatedLength;
  }

  /** Length of the sequence when its last token is drawn; a pause does not change it. */
  get finalLength(): number {
    return this.promptLength + this.maxNewTokens;
  }

  /** True if the running iteration computes the logits of this request's next token. */
  get drawsToken(): boolean {
    return this.phase === 'generation' || this.contextPosition + this.chunkLength === this.promptLength;
  }

  /** Ends the chunk that has just run. */
  finishChunk(): void {
    this.contextPosition += this.chunkLength;
    this.chunkLength = 0;
    if (this.contextPosition === this.promptLength) this.phase = 'generation';
  }

  /**
   * Puts the request back into the context phase; its generated tokens join the prompt. The planner frees its blocks.
   */
  pause(limits: ResumeLimits): void {
    this.numPauses++;
    this.#startAgain(limits);
  }

  /**
   * Called before its first step: puts it into the state after a pause that follows `generatedLength` tokens.
   */
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
