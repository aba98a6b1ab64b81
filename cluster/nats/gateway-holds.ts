import type { HoldAnswer } from './messages.js';
import type { WorkerPort } from './worker-port.js';

/** A gateway is forgotten after this many times the silence after which its requests are dropped. */
const REMEMBERED = 20;

/** A request at a worker, as its gateway knows it. */
interface Told {
  readonly item: { readonly id: string; readonly attempt: number; readonly gateway: string };
  /** The gateway has said that it waits for it from here. */
  readonly isConfirmed: boolean;
}

/** The worker's requests, and what becomes of them. */
export interface ToldRequests<R extends Told> {
  all(): Iterable<R>;
  has(request: R): boolean;
  /** What the worker sends before comes before the list. */
  flush(): void;
  confirm(request: R): void;
  drop(request: R): void;
}

export interface GatewayHoldsOptions {
  /** Id of the worker. */
  readonly id: string;
  readonly port: Pick<WorkerPort, 'hold'>;
  /** Milliseconds of a gateway's silence after which its requests are taken as abandoned. */
  readonly gatewayGraceMs: number;
}

/** A gateway with requests here. */
interface Asker {
  heardMs: number;
  isAsking: boolean;
}

/**
 * Reports to gateways which of their requests a worker has, and receives which of them they still wait for.
 * Requests of a gateway that is silent are dropped.
 *
 *   worker --hold [id, attempt] ...--> gateway
 *          <---- stale [id, attempt] --          the rest is confirmed
 */
export class GatewayHolds<R extends Told> {
  readonly #options: GatewayHoldsOptions;
  readonly #requests: ToldRequests<R>;
  readonly #askers = new Map<string, Asker>();

  constructor(options: GatewayHoldsOptions, requests: ToldRequests<R>) {
    this.#options = options;
    this.#requests = requests;
  }

  /** A request of the gateway has come. */
  note(gateway: string): void {
    if (!this.#askers.has(gateway))
      this.#askers.set(gateway, { heardMs: performance.now(), isAsking: false });
  }

  /** Reports to every gateway which of its requests the worker has. */
  tellAll(): void {
    for (const gateway of this.#askers.keys()) void this.tell(gateway);
  }

  async tell(gateway: string): Promise<void> {
    const asker = this.#askers.get(gateway);
    if (asker === undefined || asker.isAsking) return;
    asker.isAsking = true;
    this.#requests.flush();
    const { id: worker, port, gatewayGraceMs } = this.#options;
    const told = this.#of(gateway);
    const held = told.map(({ item }): [string, number] => [item.id, item.attempt]);
    const answer = await port.hold(gateway, { kind: 'hold', worker, held });
    asker.isAsking = false;
    const nowMs = performance.now();
    if (answer !== null) {
      asker.heardMs = nowMs;
      this.#confirm(told, answer);
    } else if (nowMs - asker.heardMs > gatewayGraceMs) {
      for (const one of told) if (this.#requests.has(one)) this.#requests.drop(one);
      // It may come back, and learns at once then that its requests were given up.
      if (nowMs - asker.heardMs <= REMEMBERED * gatewayGraceMs) return;
    } else return;
    // The gateway gets reports until it has confirmed that nothing is left: the last tokens may have been
    // lost on the way.
    if (told.length === 0 && this.#of(gateway).length === 0) this.#askers.delete(gateway);
  }

  #of(gateway: string): R[] {
    return [...this.#requests.all()].filter(({ item }) => item.gateway === gateway);
  }

  #confirm(told: readonly R[], { stale }: HoldAnswer): void {
    const unwanted = new Map(stale);
    for (const request of told) {
      if (!this.#requests.has(request)) continue;
      if (unwanted.get(request.item.id) === request.item.attempt) this.#requests.drop(request);
      else if (!request.isConfirmed) this.#requests.confirm(request);
    }
    // Those that came meanwhile.
    const rest = [...this.#requests.all()].find(
      ({ isConfirmed, item }) => !isConfirmed && told[0]?.item.gateway === item.gateway,
    );
    if (rest !== undefined) void this.tell(rest.item.gateway);
  }
}
