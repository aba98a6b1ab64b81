import type { CacheAsk, CacheChange, CachePart } from './cache-messages.js';
import type {
  BlocksAnswer,
  BlocksMessage,
  FramesMessage,
  HoldAnswer,
  HoldMessage,
  PictureMessage,
  StopMessage,
  WorkItem,
} from './messages.js';

/** A request that was taken out of the stream, for the time being. */
export interface Delivery {
  item: WorkItem;
  /** Another worker has given it back, or was too late to say that it has it. */
  isRedelivered: boolean;
  /** It is done with, as far as the stream goes. */
  ack(): void;
  /** Another worker may have it. */
  giveBack(): void;
}

/** What a worker needs of the queue's transport. */
export interface WorkerPort {
  /**
   * Asks for requests, which come through WorkerListener.onWork. Resolves with the number of those that did not come
   * after all, after a while or an error. Never rejects.
   */
  pull(max: number): Promise<number>;
  /** Ends all pulls. */
  stopPulling(): void;
  /** @throws where a frame is longer than the NATS server takes. */
  send(gateway: string, message: FramesMessage): void;
  /** Longest message in bytes. */
  readonly maxBytes: number;
  /** null: no answer came. */
  hold(gateway: string, message: HoldMessage): Promise<HoldAnswer | null>;
  /**
   * Sends the worker's beat to all gateways. @param isWhole with the card of its model, which equal workers
   * share
   */
  tell(isWhole: boolean): void;
  /** Publishes a change of the cache to all gateways. */
  tellCache(change: CacheChange): void;
  /** Asks another worker for a part of the blocks that it keeps; null: no answer came. */
  fetchBlocks(worker: string, message: BlocksMessage): Promise<BlocksAnswer | null>;
  /** Asks a gateway for a part of a picture; null: no answer came. */
  fetchPicture(gateway: string, message: PictureMessage): Promise<BlocksAnswer | null>;
}

export interface WorkerListener {
  onWork(delivery: Delivery): void;
  /** A gateway has chosen this worker for a request. False: there is no room for it. */
  onOffer(item: WorkItem): boolean;
  /** A gateway asks what the worker's cache has; null: it does not report that. */
  onCacheAsk(message: CacheAsk): CacheChange | CachePart | null;
  onStop(message: StopMessage): void;
  /** Another worker asks for a part of the blocks that this one keeps. */
  onBlocks(message: BlocksMessage): BlocksAnswer;
}

/** Requests that may wait in the engine for their first step: with more, others have room sooner. */
const MAX_WAITING = 8;

/** Number of requests that a worker has room for, of which it may have asked for some already. @param waiting see WorkEngine */
export function roomFor({ places, held, waiting }: Record<'places' | 'held' | 'waiting', number>): number {
  return Math.min(places - held, MAX_WAITING - waiting);
}
