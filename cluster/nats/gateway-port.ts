import { SkeinError } from '../../base/skein-error.js';
import type { DirectAnswer } from '../routing/model-routing.js';
import type { Beat } from './beat.js';
import type { CacheAsk, CacheChange, CachePart } from './cache-messages.js';
import type {
  BlocksAnswer,
  FramesMessage,
  HoldAnswer,
  HoldMessage,
  PictureMessage,
  StopMessage,
  WorkItem,
} from './messages.js';
import type { PoolName } from './names.js';

/** A request that lies in the stream. */
export interface Offer {
  /** Takes it out again, if it is still there. Never rejects. */
  withdraw(): void;
}

/**
 * Why a request does not lie in the stream:
 *
 *   full       the stream has as many as it may have, or no place to store more
 *   large      it is longer than the NATS server takes
 *   away       the NATS server, or its stream, cannot be reached
 */
export class OfferError extends SkeinError {
  override name = 'OfferError';
  override readonly code = 'SKEIN_QUEUE_OFFER';
  readonly reason: 'full' | 'large' | 'away';

  constructor(reason: OfferError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** What a gateway needs of the queue's transport. */
export interface GatewayPort {
  /** Puts a request into the stream; twice the same attempt counts once. @throws OfferError */
  offer(pool: PoolName, item: WorkItem): Promise<Offer>;
  stop(worker: string, message: StopMessage): void;
  /**
   * Asks a worker whether it is there: its beat; `nobody` where it is certainly not there; null where no
   * answer came.
   */
  probe(worker: string): Promise<Beat | 'nobody' | null>;
}

/** What a gateway needs of the transport to send requests where they are cached. Nothing of it rejects. */
export interface RoutingPort {
  /** Sends a request to a worker that was chosen for it. */
  direct(worker: string, item: WorkItem): Promise<DirectAnswer>;
  /** Asks a worker for its cache; null: no answer came. */
  askCache(worker: string, message: CacheAsk): Promise<CacheChange | CachePart | null>;
}

/** Events that a gateway receives from the transport. */
export interface GatewayListener {
  onBeat(beat: Beat): void;
  onFrames(message: FramesMessage): void;
  onHold(message: HoldMessage): HoldAnswer;
  /** A worker asks for a part of a picture, of at most `most` bytes. */
  onPicture(message: PictureMessage, most: number): Promise<BlocksAnswer>;
  /** How a worker's cache changes. */
  onCache(change: CacheChange): void;
  /** The connection is lost; it will come again. */
  onDisconnect(): void;
  /** The connection is there again; what lay in the stream may be lost. */
  onReconnect(): void;
}
