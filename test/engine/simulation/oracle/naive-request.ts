import type { SimulationIteration } from '../../../../engine/simulation/simulate.js';
import type { SimulationInput, SimulationRequest } from '../../../../engine/simulation/simulation-input.js';
import type { NaiveBlock, NaivePool } from './naive-pool.js';

/** A request of the oracle: its lengths, its tokens as texts, and the blocks of each of its beams. */
export class NaiveRequest {
  readonly asked: SimulationRequest;
  readonly index: number;
  readonly beamWidth: number;
  prompt: number;
  maxNew: number;
  /** Since the last start or resume. */
  generated = 0;
  /** Context tokens that are in the cache. */
  position = 0;
  isGenerating = false;
  firstIteration = -1;
  lastIteration = -1;
  pauses = 0;
  /** Iterations in a row in which it had capacity and did not run. */
  passedOver = 0;
  reusedBlocks = 0;
  /** The blocks of the first beam. */
  blocks: NaiveBlock[] = [];
  /** The blocks that the other beams have for themselves. */
  otherBeams: NaiveBlock[] = [];
  readonly #input: SimulationInput;
  readonly #pool: NaivePool;
  readonly #originalPrompt: number;
  /** Tokens of the running step. */
  #chunk = 0;

  constructor(asked: SimulationRequest, index: number, input: SimulationInput, pool: NaivePool) {
    this.asked = asked;
    this.index = index;
    this.beamWidth = asked.beamWidth ?? 1;
    this.prompt = asked.promptLength ?? asked.tokens!.length;
    this.#originalPrompt = this.prompt;
    this.maxNew = asked.maxNewTokens;
    this.#input = input;
    this.#pool = pool;
  }

  get id() {
    return this.asked.id;
  }

  get hasStarted(): boolean {
    return this.isGenerating || this.position > 0;
  }

  get held(): number {
    return this.blocks.length + this.otherBeams.length;
  }

  /** A draft never reaches beyond the last token. */
  get draft(): number {
    return Math.max(0, Math.min(this.asked.draftLength ?? 0, this.maxNew - this.generated - 1));
  }

  /** Tokens in the cache while it generates: all but the newest. */
  get past(): number {
    return this.prompt + this.generated - 1;
  }

  get contextLeft(): number {
    return this.prompt - this.position;
  }

  /** Cache salt: requests with tokens share theirs. One without shares with none, but finds its own blocks again. */
  get salt(): string {
    return this.asked.tokens ? 'shared' : `own${this.index}`;
  }

  /** `t4`: token 4 of the input; `g7.2`: the second that request 7 generated, unlike any other. */
  get tokens(): string[] {
    const known = this.asked.tokens?.map((token) => `t${token}`);
    return Array.from({ length: this.prompt + this.generated }, (_, place) =>
      place < this.#originalPrompt ? (known?.[place] ?? `p${place}`) : `g${this.index}.${place}`,
    );
  }

  /** Blocks for `tokens` tokens: those that are full of prompt once, all others once for each beam. */
  blocksFor(tokens: number): number {
    const size = this.#input.tokensPerBlock;
    const shared = Math.floor(this.prompt / size);
    return shared + (Math.ceil(tokens / size) - shared) * this.beamWidth;
  }

  get blocksToCompletion(): number {
    return Math.max(0, this.blocksFor(this.prompt + this.maxNew) - this.held);
  }

  get blocksForThisStep(): number {
    if (this.isGenerating) return this.blocksFor(this.past + 1 + this.draft) - this.blocksFor(this.past);
    return this.position > 0 ? 0 : this.blocksFor(this.prompt);
  }

  /** The names of the prompt's full blocks: each is all tokens to its end. */
  fullPromptBlocks(size: number): string[] {
    const { tokens, salt } = this;
    return Array.from({ length: Math.floor(this.prompt / size) }, (_, index) =>
      [salt, ...tokens.slice(0, (index + 1) * size)].join(' '),
    );
  }

  firstMissingBlock(size: number): string | null {
    const index = this.fullPromptBlocks(size).findIndex(
      (_, place) => !this.#pool.isKept(this.salt, this.tokens, (place + 1) * size),
    );
    return index < 0 ? null : this.fullPromptBlocks(size)[index]!;
  }

  allocate(tokens: number): void {
    const size = this.#input.tokensPerBlock;
    this.#chunk = tokens;
    if (!this.isGenerating && this.position === 0 && this.#input.enableBlockReuse) {
      const found = this.#pool.find(this.salt, this.tokens, this.blocksFor(this.prompt));
      this.blocks = found.blocks;
      this.reusedBlocks += found.reusedBlocks;
      this.position = found.reusedTokens;
      this.#chunk = Math.min(tokens, this.contextLeft);
    }
    const length = this.isGenerating ? this.past + 1 + this.draft : this.prompt;
    while (this.blocks.length < Math.ceil(length / size)) this.blocks.push(this.#pool.take());
    while (this.held < this.blocksFor(length)) this.otherBeams.push(this.#pool.take());
  }

  step(iteration: number): SimulationIteration['scheduled'][number] {
    if (this.firstIteration < 0) this.firstIteration = iteration;
    const { id, isGenerating } = this;
    const contextBefore = isGenerating ? this.prompt : this.position;
    if (isGenerating) {
      this.#giveBackDraft();
      this.generated += 1;
    } else {
      this.position += this.#chunk;
      if (this.contextLeft === 0) {
        this.isGenerating = true;
        this.#keep(this.prompt);
        this.generated = 1;
      }
    }
    return {
      id,
      phase: isGenerating ? 'generation' : 'context',
      contextBefore,
      contextAfter: isGenerating ? this.prompt : this.position,
      generated: this.prompt - this.#originalPrompt + this.generated,
    };
  }

  pause(): void {
    this.pauses += 1;
    this.#keep(this.isGenerating ? this.past : this.position);
    this.#releaseAll();
    if (this.beamWidth === 1) {
      const kept = Math.min(this.generated, Math.max(0, this.#longestContext - this.prompt));
      this.prompt += kept;
      this.maxNew -= kept;
    }
    this.generated = 0;
    this.position = 0;
    this.isGenerating = false;
  }

  leaveIfDone(iteration: number): void {
    if (this.generated < this.maxNew) return;
    this.lastIteration = iteration;
    this.#keep(this.past);
    this.#releaseAll();
  }

  /** Without chunks, what one iteration takes besides the longest draft. */
  get #longestContext(): number {
    const { chunk, maxNumTokens = Number.POSITIVE_INFINITY } = this.#input;
    return chunk ? Number.POSITIVE_INFINITY : maxNumTokens - (this.asked.draftLength ?? 0);
  }

  /** Keeps the blocks of a sequence for reuse, but not the tokens that beams generate. */
  #keep(length: number): void {
    if (!this.#input.enableBlockReuse) return;
    const kept = this.beamWidth > 1 ? Math.min(length, this.prompt) : length;
    this.#pool.keep(this.salt, this.tokens, kept, this.blocks);
  }

  #giveBackDraft(): void {
    const length = this.past + 1;
    while (this.blocks.length > Math.ceil(length / this.#input.tokensPerBlock))
      this.#pool.release(this.blocks.pop()!);
    while (this.held > this.blocksFor(length)) this.#pool.release(this.otherBeams.pop()!);
  }

  #releaseAll(): void {
    this.#pool.releaseAll(this.otherBeams);
    this.#pool.releaseAll(this.blocks);
    this.blocks = [];
    this.otherBeams = [];
  }
}
