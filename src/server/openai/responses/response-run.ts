import type { ChatPlan } from '../../../generation/chat-plan.js';
import { imageTokensOf } from '../../../generation/pictures/seen-request.js';
import type { TextPiece } from '../../../generation/text-generation.js';
import type { ChoiceRun } from '../../answering/choice-run.js';
import type { AnswerRun } from '../../answering/respond.js';

/** A pass of the engine over a prompt. */
export interface ResponsePass {
  plan: ChatPlan;
  run: ChoiceRun;
}

/**
 * The passes that make one response, one behind the other, as one run: the answer, or a summary of the conversation, or
 * first the summary and then the answer to what it leaves.
 *
 *   compact  [ summary ]        answer  [ answer ]        both  [ summary ] -> next() -> [ answer ]
 */
export class ResponseRun implements AnswerRun {
  #pass: ResponsePass;
  readonly #passes: ResponsePass[];
  readonly #next: () => Promise<ResponsePass | null>;
  readonly #onOver: () => void;
  #isAborted = false;
  #isBehind = false;
  #keepsEnded = false;

  /**
   * @param next called when the first pass has ended; resolves with the second, null: there is none. @param onOver
   * called when all have ended.
   */
  constructor(first: ResponsePass, next: () => Promise<ResponsePass | null>, onOver: () => void) {
    this.#pass = first;
    this.#passes = [first];
    this.#next = next;
    this.#onOver = onOver;
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

  /** Keeps an answer that ends before `abort`: somebody other than the client wants it. */
  keepEnded(): void {
    this.#keepsEnded = true;
    this.#pass.run.keepEnded();
  }

  abort(): void {
    this.#isAborted = true;
    this.#pass.run.abort();
  }

  pause(): void {
    this.#isBehind = true;
    this.#pass.run.pause();
  }

  resume(): void {
    this.#isBehind = false;
    this.#pass.run.resume();
  }

  get isWaiting(): boolean {
    return this.#pass.run.isWaiting;
  }

  async consume(onPiece: (choice: number, piece: TextPiece) => void, isWhole?: boolean): Promise<void> {
    try {
      await this.#pass.run.consume(onPiece, isWhole);
      const next = this.#isAborted ? null : await this.#next();
      if (next !== null) await this.#begin(next).consume(onPiece, isWhole);
    } finally {
      this.#onOver();
    }
  }

  #begin(pass: ResponsePass): ChoiceRun {
    this.#pass = pass;
    this.#passes.push(pass);
    const { run } = pass;
    if (this.#keepsEnded) run.keepEnded();
    // What was asked for while the pass was prepared.
    if (this.#isAborted) run.abort();
    if (this.#isBehind) run.pause();
    return run;
  }
}
