import type { NatsConnection } from '@nats-io/transport-node';
import type { QueueWorker } from '../../cluster/nats/queue-worker.js';
import type { EngineStatus, ModelState } from '../serving/model-state.js';
import type { LoadState } from './loading-teller.js';

/** How a worker is, for probes that decide whether to wait for it. Only one that is ready takes requests. */
export interface HealthReport {
  status: EngineStatus | 'loading' | 'draining' | 'disconnected';
  /** Why it is not ready. */
  reason?: string;
  /** Name of the model. */
  model: string;
  /** The worker's own name, and that of those equal to it; absent while it loads. */
  worker?: string;
  pool?: string;
  /** Requests that it has. */
  requests: number;
  /** What it does while it loads, and how far it is with that; null: not known. */
  phase?: string;
  fraction?: number | null;
}

/** Who a worker is, and the state of its engine. */
export interface WorkerFacts {
  id: string;
  pool: string;
  state: Pick<ModelState, 'status' | 'reason'>;
}

/** Reports whether a connection, which is there now, is there. */
export async function followConnection(
  nc: Pick<NatsConnection, 'status'>,
  note: (isConnected: boolean) => void,
): Promise<void> {
  note(true);
  for await (const { type } of nc.status()) {
    if (type === 'disconnect') note(false);
    if (type === 'reconnect') note(true);
  }
}

/** Follows a worker from its start to its end. */
export class WorkerLife {
  readonly #model: string;
  #begun: { worker: Pick<QueueWorker, 'size' | 'isLeaving'>; facts: WorkerFacts } | null = null;
  #isConnected = false;
  #load: (() => LoadState) | null = null;

  /** @param model its name */
  constructor(model: string) {
    this.#model = model;
  }

  /** Follows the connection to the work queue from now on. */
  follow(nc: Pick<NatsConnection, 'status'>): void {
    void followConnection(nc, (isConnected) => {
      this.#isConnected = isConnected;
    });
  }

  /** Reports the progress of the load from now on. */
  watchLoad(load: () => LoadState): void {
    this.#load = load;
  }

  /** The model is loaded, and requests are asked for. */
  begin(worker: Pick<QueueWorker, 'size' | 'isLeaving'>, facts: WorkerFacts): void {
    this.#begun = { worker, facts };
  }

  report(): HealthReport {
    if (this.#begun === null) {
      const reason = 'the model is being loaded';
      return { status: 'loading', reason, model: this.#model, requests: 0, ...this.#load?.() };
    }
    const { size, isLeaving } = this.#begun.worker;
    const { id, pool, state } = this.#begun.facts;
    const is = (status: HealthReport['status'], reason: string | null): HealthReport => ({
      status,
      ...(reason === null ? {} : { reason }),
      ...{ model: this.#model, worker: id, pool, requests: size },
    });
    if (isLeaving) return is('draining', 'the worker was told to end');
    if (state.status !== 'ready') return is(state.status, state.reason);
    return this.#isConnected ? is('ready', null) : is('disconnected', 'the NATS server cannot be reached');
  }
}
