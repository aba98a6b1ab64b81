import { REQUEST_FIELDS } from '../../callbacks/request/fields.js';
import type { SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import type { AdapterNeed } from '../../scheduler/tokens/types.js';
import { RequestProgress } from '../request/request-progress.js';
import type { SimulatedTokens } from './simulated-tokens.js';

export interface SimulatedArrival {
  requestId: bigint;
  promptLength: number;
  maxNewTokens: number;
  /** Priority from 0 to 1, higher first; default 0.5. */
  priority?: number;
  /** Number of beams; default 1. */
  beamWidth?: number;
  /** Draft tokens of each step, all of them rejected; default 0. */
  draftLength?: number;
  /** LoRA adapter of its steps; default: none. */
  adapter?: AdapterNeed;
  /**
   * The prompt, followed by room for what is generated, if there is any, which is written there; absent: a
   * prompt that shares no token with any other.
   */
  tokens?: Int32Array;
  /** Number of tokens after which it ends by itself, as with an end token; absent: it runs to maxNewTokens. */
  endsAfter?: number;
}

/** A request for which no model draws tokens: whenever a model would draw one, it just becomes longer by one. */
export class SimulatedRequest extends RequestProgress {
  readonly beamWidth: number;
  readonly #originalPromptLength: number;
  readonly #draftLength: number;
  readonly #endsAfter: number;
  readonly #tokens: SimulatedTokens | null;
  #sequence: Int32Array | null;
  /** Tokens of the sequence that are made up already, or the prompt's. */
  #numKnown: number;

  /** @param tokens null: the request shares nothing */
  constructor(arrival: SimulatedArrival, tokens: SimulatedTokens | null) {
    const { requestId, promptLength, maxNewTokens, priority = REQUEST_FIELDS.priority.default } = arrival;
    super(requestId, { promptLength, maxNewTokens, priority });
    this.beamWidth = arrival.beamWidth ?? 1;
    this.adapter = arrival.adapter ?? null;
    this.#originalPromptLength = promptLength;
    this.#draftLength = arrival.draftLength ?? 0;
    this.#endsAfter = arrival.endsAfter ?? Number.POSITIVE_INFINITY;
    this.#tokens = tokens;
    this.#sequence = arrival.tokens ?? null;
    this.#numKnown = promptLength;
  }

  /** Length of the draft, which never reaches beyond the last token: there it could not be used. */
  get draftLength(): number {
    return Math.max(0, Math.min(this.#draftLength, this.maxNewTokens - this.generatedLength - 1));
  }

  override get longestDraft(): number {
    return this.#draftLength;
  }

  /** A prompt without tokens has a salt of its own: it finds only blocks that it left itself before a pause. */
  override get shared(): SharedPrefix | null {
    if (this.#tokens === null) return null;
    if (this.#sequence === null) {
      return { tokens: this.#tokens.positions(this.numTokens), salt: this.requestId + 1n };
    }
    if (this.numTokens > this.#numKnown) {
      this.#sequence = this.#tokens.continued(this.#sequence, this.#numKnown, this.numTokens);
      this.#numKnown = this.#sequence.length;
    }
    return { tokens: this.#sequence, salt: 0n, loraId: this.adapter?.taskId ?? null };
  }

  /** Number of tokens generated over all its runs. */
  get generated(): number {
    return this.numTokens - this.#originalPromptLength;
  }

  get isComplete(): boolean {
    if (this.phase === 'context') return false;
    return this.generatedLength >= this.maxNewTokens || this.generated >= this.#endsAfter;
  }

  /** Number of steps that it can run while generating before its last one; 0: the next one may be its last. */
  get stepsBeforeLast(): number {
    return Math.min(this.maxNewTokens - this.generatedLength, this.#endsAfter - this.generated) - 1;
  }

  /** Notes that `count` steps have run while generating, none of which was its last one. */
  finishSteps(count: number): void {
    this.numVerified = this.numTokens + count - 1;
    this.generatedLength += count;
  }

  /** Notes that one step has run: a chunk of context, whose last one brings a token, or one more token. */
  finishStep(): void {
    const { drawsToken } = this;
    if (this.phase === 'context') this.finishChunk();
    if (!drawsToken) return;
    this.numVerified = this.numTokens;
    this.generatedLength += 1;
  }
}
