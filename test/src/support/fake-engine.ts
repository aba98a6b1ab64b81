import type { PieceSource } from '../../../callbacks/piece-source.js';
import {
  type ContextProgress,
  type FinishReason,
  QueueFullError,
  type TokenPiece,
  type TokenRequest,
  type TokenTiming,
} from '../../../callbacks/token-request.js';
import type { TokenEngine } from '../../../src/generation/text-model.js';
import { PumpedPieces } from './pumped-pieces.js';

/** A step of a script: tokens, progress of the prompt, an end, a pause in milliseconds, or an error. */
export type Step =
  | {
      tokens: readonly number[];
      cachedTokens?: number;
      logProbs?: readonly number[];
      top?: readonly (readonly (readonly [number, number])[])[];
      /** Log-prob of each prompt token but the first, and the most probable tokens at its place. */
      context?: readonly { logProb: number; top: readonly (readonly [number, number])[] }[];
    }
  | { progress: ContextProgress }
  | { engines: readonly string[] }
  | { finish: FinishReason; timing?: TokenTiming }
  | { waitMs: number }
  | { error: Error };

export type Script = (request: TokenRequest, index: number) => readonly Step[];

/** Stands where the in-process host stands: runs a script per request, and notes what was asked and cancelled. */
export class FakeEngine implements TokenEngine {
  readonly requests: TokenRequest[] = [];
  /** Requests that were asked to stop before their script ended. */
  cancelled = 0;
  active = 0;
  readonly #script: Script;
  readonly #maxActive: number;

  constructor(script: Script, maxActive = Number.POSITIVE_INFINITY) {
    this.#script = script;
    this.#maxActive = maxActive;
  }

  checkRoom(): void {
    if (this.active >= this.#maxActive) throw new QueueFullError(this.#maxActive);
  }

  submit(request: TokenRequest): PieceSource<TokenPiece> {
    this.checkRoom();
    const index = this.requests.push(request) - 1;
    this.active++;
    let ended = false;
    const end = (cancelled: boolean) => {
      if (ended) return;
      ended = true;
      this.active--;
      if (cancelled) this.cancelled++;
    };
    request.signal?.addEventListener('abort', () => end(true), { once: true });
    const noteEngines = (engines: readonly string[]) => {
      pieces.engines = engines;
    };
    const steps = this.#script(request, index);
    const pieces = new PumpedPieces(this.#run(steps, request, end, noteEngines), () => end(true));
    return pieces;
  }

  async *#run(
    steps: readonly Step[],
    request: TokenRequest,
    end: (cancelled: boolean) => void,
    noteEngines: (engines: readonly string[]) => void,
  ): AsyncGenerator<TokenPiece, void, undefined> {
    const nothing = new Int32Array(0);
    for (const step of steps) {
      if ('waitMs' in step) await aborted(request.signal, step.waitMs);
      if (request.signal?.aborted) {
        yield { tokens: nothing, finishReason: 'cancelled' };
        return;
      }
      if ('error' in step) {
        end(false);
        throw step.error;
      }
      if ('finish' in step) {
        end(false);
        const timing = step.timing === undefined ? {} : { timing: step.timing };
        yield { tokens: nothing, finishReason: step.finish, ...timing };
        return;
      }
      if ('engines' in step) noteEngines(step.engines);
      if ('progress' in step) yield { tokens: nothing, finishReason: null, contextProgress: step.progress };
      if ('tokens' in step) yield pieceOf(step);
    }
    throw new Error('The script of the fake engine ends without a finish.');
  }
}

function pieceOf(step: Extract<Step, { tokens: readonly number[] }>): TokenPiece {
  const piece: TokenPiece = { tokens: Int32Array.from(step.tokens), finishReason: null };
  if (step.cachedTokens !== undefined) piece.cachedTokens = step.cachedTokens;
  if (step.logProbs !== undefined) piece.logProbs = Float32Array.from(step.logProbs);
  if (step.top !== undefined) {
    piece.topTokens = Int32Array.from(step.top.flat().map(([token]) => token));
    piece.topLogProbs = Float32Array.from(step.top.flat().map(([, logProb]) => logProb));
  }
  if (step.context !== undefined) {
    const top = step.context.flatMap((entry) => entry.top);
    piece.contextLogProbs = Float32Array.from(step.context, ({ logProb }) => logProb);
    piece.contextTopTokens = Int32Array.from(top, ([token]) => token);
    piece.contextTopLogProbs = Float32Array.from(top, ([, logProb]) => logProb);
  }
  return piece;
}

/** Resolves after a time, or at once when the signal is raised. */
function aborted(signal: AbortSignal | undefined, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
