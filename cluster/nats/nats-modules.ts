import type * as JetStream from '@nats-io/jetstream';
import type * as Nats from '@nats-io/transport-node';

/** The libraries of the queue, which are loaded only where one is used. */
export interface NatsModules {
  nats: typeof Nats;
  jetstream: typeof JetStream;
}
