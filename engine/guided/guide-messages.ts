import type { Guide } from '../../callbacks/guide.js';
import type { Automaton } from './automaton.js';

/** Requests of the loop to the thread that follows guides. */
export type GuideRequest =
  /**
   * Opens sequences, numbered from `first` on, that follow the same guide. Answered by `opened`, once their first masks
   * are in `masks`: [rows x words], a row for each sequence, followed by rows for a draft if there is one.
   */
  | {
      type: 'open';
      first: number;
      count: number;
      guide: Guide;
      endTokens: Int32Array;
      masks: SharedArrayBuffer;
    }
  /**
   * Asks for the masks that sequences need next, each to be written to its row. `entries`, for each sequence: sequence,
   * position, count, draft length, 1 if `forced` is of use, `count` tokens, which begin at `position` of the sequence's
   * generated tokens (0 if they are all of them), and the tokens of its draft, whose masks go to the
   * following rows. Answered by `masked` as soon as each is finished, and then by `forced` if any tokens are
   * forced.
   */
  | { type: 'mask'; step: number; entries: Int32Array }
  | { type: 'close'; first: number; count: number };

export type GuideReply =
  /** `error`: empty if the sequences can be guided. `isInvalid`: their guide is at fault. */
  | { type: 'opened'; first: number; error: string; isInvalid: boolean }
  /** `done`: pairs (step, sequence) whose masks are finished. `failures`: sequences that get no more masks. */
  | { type: 'masked'; done: Int32Array; failures: readonly GuideFailure[] }
  /**
   * Tokens that the grammar forces. `entries`: sequence, position, a token that may come at this position, count, and the
   * `count` tokens that must then follow it.
   */
  | { type: 'forced'; step: number; entries: Int32Array };

export interface GuideFailure {
  sequence: number;
  error: string;
  /** True if the request's guide is at fault. */
  isInvalid: boolean;
  /** The token that does not follow the guide, if that is the error, and its index among the generated tokens. */
  stray?: { token: number; place: number };
}

/** The loop's interface to the thread. None of its methods needs an event loop. */
export interface GuideThread {
  /** True once the thread has ended, with requests still open or not; `start` starts another one. */
  readonly isDead: boolean;
  /**
   * First sequence of the guide that it was busy with at its last report; -1: none. Valid also when it is
   * dead.
   */
  readonly busyWith: number;
  start(): void;
  /** Ends the thread and drops all requests to it. */
  stop(): void;
  post(request: GuideRequest): void;
  /** The next reply; undefined: none has come. */
  receive(): GuideReply | undefined;
  /**
   * Waits; returns true when a reply may have come or the thread has died, and false after `timeoutMs` without either.
   */
  wait(timeoutMs: number): boolean;
}

export const REQUEST_BELL = 0;
export const REPLY_BELL = 1;
/** Cell that is 1 once the thread, or the one that reads guides for it, has ended. */
export const DEAD = 2;
/** Cell with the first sequence of the guide that the thread follows now, plus 1; 0: none. */
export const BUSY_WITH = 3;
/** Cell with the first sequence of the guide that is being read now, plus 1; 0: none. */
export const READING = 4;
export const CONTROL_CELLS = 5;

/** Request of the thread that follows guides to the one that reads them. */
export interface ReadingRequest {
  key: string;
  guide: Guide;
  /** First sequence that the guide is read for. */
  first: number;
}

export interface ReadingReply {
  key: string;
  /** null: the guide cannot be read or followed. */
  automaton: Automaton | null;
  error: string;
  isInvalid: boolean;
}

/** Number of words in the mask of one row. */
export function wordsOfMask(vocabSize: number): number {
  return Math.ceil(vocabSize / 32);
}
