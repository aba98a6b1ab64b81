import { Counter, Gauge, type Registry } from 'prom-client';

/** Which way a message went. */
export type SocketMessage = 'received' | 'sent';

/** Metrics of WebSockets. */
export class SocketMetrics {
  readonly #open: Gauge;
  readonly #messages: Counter<'direction'>;
  readonly #closed: Counter<'reason'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#open = new Gauge({ name: 'skein:websockets_open', help: 'WebSockets that are open', registers });
    this.#messages = new Counter({
      name: 'skein:websocket_messages_total',
      help: 'Messages on WebSockets, received and sent',
      labelNames: ['direction'] as const,
      registers,
    });
    this.#closed = new Counter({
      name: 'skein:websockets_closed_total',
      help: 'WebSockets that were closed, by the reason of the server; client: it had none',
      labelNames: ['reason'] as const,
      registers,
    });
  }

  opened(): void {
    this.#open.inc();
  }

  message(direction: SocketMessage): void {
    this.#messages.inc({ direction });
  }

  closed(reason: string): void {
    this.#open.dec();
    this.#closed.inc({ reason });
  }
}
