import type { MessagePort } from 'node:worker_threads';
import type { Guide } from './guide.js';

/** What the loop asks of the thread that follows guides. */
export type GuideRequest =
  /** A sequence is to be guided. Answered by `opened`, once its first mask is known. */
  | { type: 'open'; sequence: number; guide: Guide; endTokens: Int32Array }
  /**
   * Masks of a step, each to be written to its row of `words`. `entries`, for each sequence: sequence, row, position, count,
   * draft length, 1 where `forced` is of use, `count` tokens, which stand at `position` of what the sequence has generated,
   * and the tokens of its draft, whose masks go to the rows behind. Answered by `masked`, and then by `forced` if there is
   * something to say.
   */
  | { type: 'mask'; step: number; words: SharedArrayBuffer; entries: Int32Array }
  | { type: 'close'; sequences: readonly number[] };

export type GuideReply =
  /** `error`: empty where the sequence can be guided. `isInvalid`: its guide is at fault. */
  | { type: 'opened'; sequence: number; error: string; isInvalid: boolean }
  | { type: 'masked'; step: number; failures: readonly { sequence: number; error: string }[] }
  /**
   * What the grammar leaves no choice about. `entries`: sequence, position, a token that may come to stand there, count, and
   * the `count` tokens that then come behind it.
   */
  | { type: 'forced'; step: number; entries: Int32Array };

/** The loop's end of the thread. Nothing of it needs an event loop. */
export interface GuideThread {
  /** It has ended, whatever was asked of it; `start` starts another one. */
  readonly isDead: boolean;
  start(): void;
  /** Ends it, with all that it was asked. */
  stop(): void;
  post(request: GuideRequest): void;
  /** The next reply that is there; undefined: none. */
  receive(): GuideReply | undefined;
  /** Returns when a reply is there or the thread has died, at the latest after `timeoutMs`. */
  wait(timeoutMs: number): void;
}

/** What a thread is started with. */
export interface GuideThreadSetup {
  port: MessagePort;
  /** Int32: REQUEST_BELL, REPLY_BELL, DEAD. */
  control: SharedArrayBuffer;
  enginePath: string;
  vocabSize: number;
}

export const REQUEST_BELL = 0;
export const REPLY_BELL = 1;
/** 1 once the thread has ended. */
export const DEAD = 2;
export const CONTROL_CELLS = 3;

/** Words of the mask of one row. */
export function wordsOfMask(vocabSize: number): number {
  return Math.ceil(vocabSize / 32);
}
