import type { NatsConnection } from '@nats-io/transport-node';
import { type CacheChange, MAX_MESSAGE_BLOCKS } from '../../cluster/nats/cache-messages.js';
import { CacheTeller } from '../../cluster/nats/cache-teller.js';
import type { Config, ConfiguredModel } from '../settings/config.js';

/** Bytes of a block's hash in a message. */
const HASH_BYTES = 8;
/** Bytes of a message in addition to its blocks. */
const OVERHEAD_BYTES = 4096;

/**
 * What a worker reports to gateways about its cache. It exists before the engine, whose first events it must
 * not miss.
 */
export class ToldCache {
  readonly teller: CacheTeller;
  /**
   * Sends changes; null: there is no receiver yet. Gateways that discover the worker later ask for all of it.
   */
  send: ((change: CacheChange) => void) | null = null;

  private constructor(worker: string, maxInMessage: number) {
    this.teller = new CacheTeller({ worker, maxInMessage, send: (change) => this.send?.(change) });
  }

  /** null: the model's cache publishes no events. */
  static of(config: Config, entry: ConfiguredModel, worker: string, nc: NatsConnection): ToldCache | null {
    const { prefixCaching, batchingScheme } = { ...config, ...entry.options } as Readonly<
      Record<string, unknown>
    >;
    if (prefixCaching !== true || batchingScheme === 'V1') return null;
    const bytes = (nc.info?.max_payload ?? 1024 * 1024) - OVERHEAD_BYTES;
    return new ToldCache(worker, Math.max(1, Math.min(MAX_MESSAGE_BLOCKS, Math.floor(bytes / HASH_BYTES))));
  }
}
