import type { TurnChanges } from '../../callbacks/worker-messages.js';
import type { LlmRequest } from '../request/llm-request.js';

/**
 * Follows who waits: a request does until it runs for the first time, and while it is paused. Each change is told once, however many
 * iterations go without a report:
 *
 *   waits --first chunk--> has begun --pause--> waits --resume--> has begun
 */
export class WaitingRequests {
  /** Requests that have changed since the last report, and whether they wait now. */
  readonly #changed = new Map<bigint, boolean>();

  /** Looks at an active request; called at the end of each iteration. */
  note(request: LlmRequest): void {
    const isWaiting = request.timing.numIterations === 0 || request.isPaused;
    if (isWaiting === request.isWaiting) return;
    request.isWaiting = isWaiting;
    this.#changed.set(request.requestId, isWaiting);
  }

  /** The changes since the last call; null: there are none. */
  take(): TurnChanges | null {
    if (this.#changed.size === 0) return null;
    const changes: TurnChanges = { began: [], paused: [] };
    for (const [requestId, isWaiting] of this.#changed) {
      (isWaiting ? changes.paused : changes.began).push(requestId);
    }
    this.#changed.clear();
    return changes;
  }
}
