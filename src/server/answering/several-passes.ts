import type { ChatPlan } from '../../generation/chat-plan.js';
import { imageTokensOf } from '../../generation/pictures/seen-request.js';
import type { TextPiece } from '../../generation/text-generation.js';
import type { ChoiceRun } from './choice-run.js';
import type { AnswerRun } from './respond.js';

/** A pass of the engine over a prompt. */
export interface EnginePass {
  plan: ChatPlan;
  run: ChoiceRun;
}

/** A piece without content: it carries what is sent between passes. */
export const NO_PIECE: TextPiece = Object.freeze({
  text: '',
  tokens: [],
  logProbs: [],
  finishReason: null,
  stopReason: null,
});

/**
 * The passes that make one answer, one after the other, as one run: a summary of the conversation and the answer to
 * what it leaves, or an answer whose calls run here, and the answers to what they give.
 *
 *   [ summary ] -> [ answer ]        [ answer with calls ] -> calls run -> [ answer ]
 */
export class SeveralPasses implements AnswerRun {
  readonly #source: AsyncIterator<EnginePass, void>;
  readonly #onAbort: () => void;
  readonly #onOver: () => void;
  readonly #passes: EnginePass[] = [];
  /** Taken from the source, and not consumed yet. */
  #prepared: EnginePass | null = null;
  #isAborted = false;
  #isBehind = false;
  #keepsEnded = false;
  #tell: () => void = () => {};

  /**
   * @param source makes each pass when the one before it has ended. @param onAbort ends what is done between passes.
   * @param onOver called when all have ended
   */
  constructor(source: AsyncIterator<EnginePass, void>, onAbort: () => void, onOver: () => void) {
    this.#source = source;
    this.#onAbort = onAbort;
    this.#onOver = onOver;
  }

  /** Makes the first pass now, so that its refusal is one of the request. @throws what the source throws */
  async prepare(): Promise<void> {
    const { value } = await this.#source.next();
    if (value) this.#begin(value);
    this.#prepared = value ?? null;
  }

  get promptTokens(): number {
    return this.#passes.reduce((sum, { plan }) => sum + plan.promptTokens.length, 0);
  }

  get imageTokens(): number {
    return this.#passes.reduce((sum, { plan }) => sum + imageTokensOf(plan), 0);
  }

  get completionTokens(): number {
    return this.#passes.reduce((sum, { run }) => sum + run.completionTokens, 0);
  }

  get cachedTokens(): number {
    return this.#passes.reduce((sum, { run }) => sum + run.cachedTokens, 0);
  }

  /** Fingerprints of the engines elsewhere that have answered so far, each once; null: none, or the model's own. */
  get engines(): readonly string[] | null {
    const all = new Set(this.#passes.flatMap(({ run }) => run.engines ?? []));
    return all.size === 0 ? null : [...all];
  }

  get #run(): ChoiceRun | undefined {
    return this.#passes.at(-1)?.run;
  }

  /** Keeps an answer that ends before `abort`: something other than the client wants it. */
  keepEnded(): void {
    this.#keepsEnded = true;
    this.#run?.keepEnded();
  }

  abort(): void {
    this.#isAborted = true;
    this.#onAbort();
    this.#run?.abort();
  }

  pause(): void {
    this.#isBehind = true;
    this.#run?.pause();
  }

  resume(): void {
    this.#isBehind = false;
    this.#run?.resume();
  }

  get isWaiting(): boolean {
    return this.#run?.isWaiting ?? false;
  }

  /** Has what was made since the last piece go out. */
  tell(): void {
    this.#tell();
  }

  async consume(onPiece: (choice: number, piece: TextPiece) => void, isWhole?: boolean): Promise<void> {
    this.#tell = () => onPiece(0, NO_PIECE);
    try {
      for (;;) {
        const pass = this.#prepared ?? (await this.#next());
        this.#prepared = null;
        if (pass === null) return;
        await pass.run.consume(onPiece, isWhole);
        if (this.#isAborted) return;
      }
    } finally {
      await this.#source.return?.();
      this.#onOver();
    }
  }

  async #next(): Promise<EnginePass | null> {
    if (this.#isAborted) return null;
    const { value } = await this.#source.next();
    if (!value) return null;
    this.#begin(value);
    return value;
  }

  #begin(pass: EnginePass): void {
    this.#passes.push(pass);
    const { run } = pass;
    if (this.#keepsEnded) run.keepEnded();
    // What was asked for while the pass was prepared.
    if (this.#isAborted) run.abort();
    if (this.#isBehind) run.pause();
  }
}
