import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';
import { tellGuarded } from '../../base/guarded-calls.js';
import type { FunctionCallbacks } from '../../callbacks/gpt-manager-options.js';
import { failure } from '../../callbacks/request-failure.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import { failedResponse, sendTo } from '../../callbacks/unpack-responses.js';

/** Messages between the hosts of ranks whose callbacks are all called. */
export type EveryRankMessage =
  | { type: 'ask'; id: number; what: 'requests' | 'stops'; max: number }
  | { type: 'asked'; id: number; digest: string }
  | { type: 'response'; response: Parameters<FunctionCallbacks['sendResponse']> };

/**
 * Rank 0's callbacks where those of every rank are called: what a callback of rank 0 brings counts once all others have brought the same.
 *
 *   rank 0   getInferenceRequests(max) ---- ask ----> rank 1   getInferenceRequests(max)
 *            the same digest?          <--- asked ---          digest of what it brought
 */
export class EveryRankLeader {
  readonly #callbacks: FunctionCallbacks;
  readonly #others: number;
  readonly #tell: (message: EveryRankMessage) => void;
  readonly #lose: (reason: string) => void;
  readonly #asked = new Map<number, { digests: Map<number, string>; settle: () => void }>();
  #lastId = 0;

  /** @param lose ends the group */
  constructor(
    callbacks: FunctionCallbacks,
    others: number,
    tell: (message: EveryRankMessage) => void,
    lose: (reason: string) => void,
  ) {
    this.#callbacks = callbacks;
    this.#others = others;
    this.#tell = tell;
    this.#lose = lose;
  }

  /** Callbacks for the bridge. */
  get callbacks(): FunctionCallbacks {
    const { getInferenceRequests, sendResponse, pollStopSignals } = this.#callbacks;
    return {
      ...this.#callbacks,
      getInferenceRequests: (max) =>
        this.#ask('requests', max, async () => await getInferenceRequests(max), digestOfRequests),
      sendResponse: (...response) => {
        this.#tell({ type: 'response', response });
        return sendResponse(...response);
      },
      ...(pollStopSignals === undefined
        ? {}
        : { pollStopSignals: () => this.#ask('stops', 0, async () => await pollStopSignals(), digestOfIds) }),
    };
  }

  receive(rank: number, message: EveryRankMessage): void {
    if (message.type !== 'asked') return;
    const open = this.#asked.get(message.id);
    open?.digests.set(rank, message.digest);
    if (open?.digests.size === this.#others) open.settle();
  }

  /** The group is gone: no rank answers any more. */
  forget(): void {
    for (const { settle } of this.#asked.values()) settle();
  }

  async #ask<T>(
    what: 'requests' | 'stops',
    max: number,
    own: () => Promise<T>,
    digest: (brought: T) => string,
  ): Promise<T> {
    const id = ++this.#lastId;
    const digests = new Map<number, string>();
    const answered = new Promise<void>((settle) => this.#asked.set(id, { digests, settle }));
    this.#tell({ type: 'ask', id, what, max });
    try {
      const brought = await own();
      await answered;
      const expected = digest(brought);
      for (const [rank, found] of digests) {
        if (found === expected) continue;
        const reason = `Rank ${rank} brought other ${what === 'requests' ? 'requests' : 'stop signals'} than rank 0; the callbacks of all ranks must bring the same.`;
        this.#lose(reason);
        // Rank 0 has taken them: they are given out, and end with the group, each with this reason.
        return brought;
      }
      return brought;
    } finally {
      this.#asked.delete(id);
    }
  }
}

/** `terminateReqId`: a request that is not answered. */
type FollowerCallbacks = FunctionCallbacks & { terminateReqId?: bigint | undefined };

/** The callbacks of the other ranks. What they brought gets a final response in any case: rank 0's, or an error at the end of the group. */
export class EveryRankFollower {
  readonly #callbacks: FollowerCallbacks;
  readonly #answer: (message: EveryRankMessage) => void;
  readonly #report: (error: Error) => void;
  /** Requests that it brought and whose final response has not come. */
  readonly #inFlight = new Set<bigint>();

  constructor(
    callbacks: FollowerCallbacks,
    answer: (message: EveryRankMessage) => void,
    report: (error: Error) => void,
  ) {
    this.#callbacks = callbacks;
    this.#answer = answer;
    this.#report = report;
  }

  async receive(message: EveryRankMessage): Promise<void> {
    try {
      if (message.type === 'response') {
        const [requestId, , final] = message.response;
        if (final) this.#inFlight.delete(requestId);
        await this.#callbacks.sendResponse(...message.response);
      }
      if (message.type === 'ask')
        this.#answer({ type: 'asked', id: message.id, digest: await this.#digest(message) });
    } catch (error) {
      this.#report(error as Error);
      // What it would have brought is not known, so it is not the same.
      if (message.type === 'ask') this.#answer({ type: 'asked', id: message.id, digest: 'none' });
    }
  }

  /** The group has ended: no more responses come. @param error null where rank 0 has ended it */
  fail(error: Error | null): void {
    const why =
      error === null
        ? failure('ended', 'The manager was shut down.')
        : failure('internal', `The engine failed: ${error.message}`);
    for (const requestId of this.#inFlight) {
      if (requestId === this.#callbacks.terminateReqId) continue;
      const send = () => sendTo(this.#callbacks.sendResponse, failedResponse(requestId, why));
      tellGuarded({ callback: 'sendResponse', requestId }, send, this.#report);
    }
    this.#inFlight.clear();
  }

  async #digest({ what, max }: Extract<EveryRankMessage, { type: 'ask' }>): Promise<string> {
    if (what === 'requests') {
      const requests = await this.#callbacks.getInferenceRequests(max);
      const digest = digestOfRequests(requests);
      for (const { requestId } of requests) this.#inFlight.add(requestId);
      return digest;
    }
    return digestOfIds((await this.#callbacks.pollStopSignals?.()) ?? new Set());
  }
}

/** Of all that an answer depends on: the times of arrival are each rank's own. */
function digestOfRequests(requests: readonly InferenceRequest[]): string {
  return digestOf(
    requests.map(({ requestId, priority, inputs }) => [
      requestId,
      priority ?? null,
      Object.entries(inputs)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { shape, data }]) => [name, shape, data.slice()]),
    ]),
  );
}

function digestOfIds(ids: ReadonlySet<bigint>): string {
  return digestOf([...ids].sort((a, b) => (a < b ? -1 : 1)));
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(serialize(value)).digest('hex');
}
