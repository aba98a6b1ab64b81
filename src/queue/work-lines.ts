import type { TokenPiece, TokenRequest } from '../../callbacks/token-request.js';
import type { WorkItem } from '../../cluster/nats/messages.js';
import { namesOfItem } from '../../cluster/nats/request-names.js';
import type { WorkEnd, WorkObserver } from '../../cluster/nats/work-observer.js';
import type { ServerLog } from '../server/web/server-log.js';

/** The worker's line in the log for one attempt of a request, when it is over. */
export class WorkLine implements WorkObserver {
  readonly #log: Pick<ServerLog, 'info'>;
  readonly #item: WorkItem;
  readonly #worker: string;
  readonly #promptTokens: number;
  readonly #startMs = performance.now();
  #firstMs: number | null = null;
  #cachedTokens = 0;
  #completionTokens = 0;

  constructor(log: Pick<ServerLog, 'info'>, worker: string, item: WorkItem, { promptTokens }: TokenRequest) {
    this.#log = log;
    this.#worker = worker;
    this.#item = item;
    this.#promptTokens = promptTokens.length;
  }

  onBlocks(): void {}
  onSubmit(): void {}

  onPiece({ tokens, cachedTokens }: TokenPiece): void {
    this.#cachedTokens = Math.max(this.#cachedTokens, cachedTokens ?? 0);
    if (tokens.length > 0) this.#firstMs ??= performance.now();
    this.#completionTokens += tokens.length;
  }

  onEnd(end: WorkEnd, reason?: string): void {
    const { gateway, attempt } = this.#item;
    const since = (ms: number) => Math.round(1000 * (ms - this.#startMs)) / 1000;
    this.#log.info(
      {
        ...namesOfItem(this.#item),
        ...{ worker: this.#worker, gateway, attempt, end },
        ...(reason === undefined ? {} : { reason }),
        promptTokens: this.#promptTokens,
        cachedTokens: this.#cachedTokens,
        completionTokens: this.#completionTokens,
        ...(this.#firstMs === null ? {} : { firstTokenMs: since(this.#firstMs) }),
        durationMs: since(performance.now()),
      },
      'request',
    );
  }
}
